package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/bench/calls"
	"github.com/luanette/luanette/internal/chat/llm/llmtest"
	"github.com/luanette/luanette/internal/mcp/hub"
)

// restartEvery is how often one of the upstreams restarts.
const restartEvery = 5 * time.Second

// servers are the server under test, its upstreams and its model.
type servers struct {
	url       string
	folder    string
	process   *exec.Cmd
	upstreams []*upstreamServer
	model     *llmtest.Server
}

// startServers starts all. The caller stops what was started, also after an error.
func startServers(ctx context.Context, o options) (s *servers, err error) {
	s = &servers{model: llmtest.New(func(llmtest.Request) llmtest.Step { return llmtest.Step{Echo: true} })}
	if s.folder, err = os.MkdirTemp("", "luanette-soak-"); err != nil {
		return s, err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "data = %q\n[log]\nlevel = \"error\"\n[chat]\nbase_url = %q\n", filepath.Join(s.folder, "data"), s.model.URL)
	for n := range o.upstreams {
		u, err := startUpstream(ctx, "127.0.0.1:0")
		if err != nil {
			return s, err
		}
		s.upstreams = append(s.upstreams, u)
		fmt.Fprintf(&text, "[upstreams.up%d]\nurl = \"http://%s/mcp\"\n", n, u.address)
	}
	file := filepath.Join(s.folder, "luanette.toml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return s, err
	}
	return s, s.startProcess(ctx, o.binary, file)
}

// startProcess starts the server and waits until it is ready.
func (s *servers) startProcess(ctx context.Context, binary, file string) error {
	address, err := calls.FreeAddress()
	if err != nil {
		return err
	}
	s.url = "http://" + address
	s.process = exec.CommandContext(ctx, binary, "serve", "--config", file, "--listen", address)
	s.process.Env = append(os.Environ(), "HOME="+s.folder, "ANTHROPIC_API_KEY="+llmtest.Key)
	s.process.Stderr = os.Stderr
	if err := s.process.Start(); err != nil {
		return err
	}
	for range 300 {
		if text, err := get(ctx, s.url+"/health"); err == nil && strings.Count(text, `"state":"connected"`) == len(s.upstreams) {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("%s does not answer, or its upstreams are not connected", s.url)
}

// stop stops all that was started.
func (s *servers) stop() {
	if s.process != nil && s.process.Process != nil {
		_ = s.process.Process.Signal(os.Interrupt)
		_ = s.process.Wait() // it ends by the signal
	}
	for _, u := range s.upstreams {
		u.stop()
	}
	s.model.Close()
	_ = os.RemoveAll(s.folder) // the folder is temporary anyhow
}

// restartSome restarts the upstreams in turn.
func (s *servers) restartSome(ctx context.Context) {
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(restartEvery):
		}
		u := s.upstreams[n%len(s.upstreams)]
		u.stop()
		if err := u.start(ctx); err != nil && ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, "restart an upstream:", err)
		}
	}
}

// upstreamServer is an MCP server with one tool.
type upstreamServer struct {
	address string
	mu      sync.Mutex
	hub     *hub.Hub
	http    *http.Server
}

func startUpstream(ctx context.Context, address string) (*upstreamServer, error) {
	u := &upstreamServer{address: address}
	return u, u.start(ctx)
}

// start listens on the address that it had before, if any.
func (u *upstreamServer) start(ctx context.Context) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", u.address)
	if err != nil {
		return err
	}
	u.address = listener.Addr().String()
	u.hub = calls.Echo()
	u.http = &http.Server{Handler: u.hub.Handler(), ReadHeaderTimeout: time.Minute}
	go func(server *http.Server) { _ = server.Serve(listener) }(u.http) // until stop
	return nil
}

func (u *upstreamServer) stop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	_ = u.http.Close() // open connections break, as in a crash
	_ = u.hub.Close(context.Background())
}

// window is the length of the parts of a run whose averages are compared.
const window = time.Minute

// interval is the time between two readings.
const interval = 5 * time.Second

// watched are the metrics that may not grow.
var watched = []string{"process_memory_usage_bytes", "go_goroutine_count", "process_open_file_descriptor_count"}

// reading is the values of the watched metrics at a time.
type reading struct {
	at     time.Duration // since the start
	values map[string]float64
}

// watch reads the metrics until ctx ends, and prints them with what was done, once a
// minute.
func watch(ctx context.Context, url string, report func() string) (all []reading) {
	began := time.Now()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return all
		case <-ticker.C:
		}
		text, err := get(ctx, url+"/metrics")
		if err != nil {
			continue // compare fails if that happens often
		}
		r := reading{time.Since(began), values(text)}
		all = append(all, r)
		if n%int(window/interval) == 0 {
			fmt.Printf("%5.1f min  %6.1f MB  %5.0f goroutines  %4.0f files  %s\n", r.at.Minutes(), r.values[watched[0]]/1e6, r.values[watched[1]], r.values[watched[2]], report())
		}
	}
}

func values(text string) map[string]float64 {
	found := map[string]float64{}
	for _, name := range watched {
		if m := regexp.MustCompile(`(?m)^` + name + `(?:\{[^}]*\})? (\S+)$`).FindStringSubmatch(text); m != nil {
			found[name], _ = strconv.ParseFloat(m[1], 64) // Prometheus writes numbers
		}
	}
	return found
}

// compare fails if the average of the last minute exceeds that of the first minute after
// the warm-up by more than 10 %. A few goroutines and files more are no leak.
func compare(all []reading, warmup time.Duration) error {
	if len(all) == 0 || all[len(all)-1].at < warmup+2*window {
		return errors.New("too few readings: the server did not answer, or the run was stopped")
	}
	end := all[len(all)-1].at
	var errs []error
	for _, name := range watched {
		first, last := average(all, name, warmup, warmup+window), average(all, name, end-window, end)
		fmt.Printf("%s: %.0f after %v, %.0f in the last minute (%+.1f %%)\n", name, first, warmup, last, (last/first-1)*100)
		if first == 0 || last > first*1.1+20 {
			errs = append(errs, fmt.Errorf("%s grew from %.0f to %.0f", name, first, last))
		}
	}
	return errors.Join(errs...)
}

func average(all []reading, name string, from, to time.Duration) float64 {
	var list []float64
	for _, r := range all {
		if r.at >= from && r.at <= to {
			list = append(list, r.values[name])
		}
	}
	slices.Sort(list)
	if len(list) == 0 {
		return 0
	}
	return list[len(list)/2]
}

func get(ctx context.Context, url string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	return string(text), err
}
