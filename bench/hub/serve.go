package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/http/pprof"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/luanette/luanette/bench/calls"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/server"
)

// serve serves a handler until ctx is done.
func serve(ctx context.Context, address string, h http.Handler) error {
	s := &http.Server{Addr: address, Handler: h}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// serveProxy passes requests on as they come.
func serveProxy(ctx context.Context, address, to string) error {
	target, err := url.Parse(to)
	if err != nil {
		return err
	}
	return serve(ctx, address, &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: &http.Transport{MaxIdleConnsPerHost: 1024},
	})
}

// serveHub is luanette serve, with profiles on another loopback address.
func serveHub(ctx context.Context, address, file string) error {
	env := config.Environment{"GOGC": os.Getenv("GOGC")}
	loaded, err := config.Load(config.Sources{File: file, Env: config.Environment{}, Flags: map[string]string{"listen": address}})
	if err != nil {
		return err
	}
	loaded.TuneCollector(env)
	srv, err := server.Build(ctx, loaded, server.Options{Version: "bench", Stderr: io.Discard, Env: env})
	if err != nil {
		return err
	}
	profiles := make(chan error, 1)
	go func() { profiles <- serve(ctx, profileAddress(address), profileHandler()) }()
	return errors.Join(srv.Serve(ctx), <-profiles)
}

// profileAddress is where the hub at an address serves its profiles: on the same port of
// another loopback address.
func profileAddress(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return net.JoinHostPort("127.0.0.2", port)
}

func profileHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.Handle("GET /debug/pprof/", http.HandlerFunc(pprof.Index))
	return mux
}

// servers are the processes of a run.
type servers struct {
	upstream, proxy, hub *process
	also                 *process // nil without -also
	folder               string
}

// startServers starts them all. The caller stops what was started, also after an error.
func startServers(ctx context.Context, also string) (s *servers, err error) {
	s = &servers{}
	if s.folder, err = os.MkdirTemp("", "luanette-bench-"); err != nil {
		return s, err
	}
	self, err := os.Executable()
	if err != nil {
		return s, err
	}
	if s.upstream, err = start(ctx, "/mcp", self, "-role", "upstream", "-listen"); err != nil {
		return s, err
	}
	if s.proxy, err = start(ctx, "/mcp", self, "-role", "proxy", "-upstream", s.upstream.url, "-listen"); err != nil {
		return s, err
	}
	if s.hub, err = s.startHub(ctx, "this", self, "-role", "hub"); err != nil || also == "" {
		return s, err
	}
	s.also, err = s.startHub(ctx, "also", also, "serve")
	return s, err
}

// startHub starts a luanette with everything on and approves the tools of its upstreams.
func (s *servers) startHub(ctx context.Context, name, binary string, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(s.folder, name)
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	file := filepath.Join(folder, "luanette.toml")
	var text strings.Builder
	fmt.Fprintf(&text, "data = %q\n%s[log]\nlevel = \"error\"\n", folder, calls.Checks["on"])
	fmt.Fprintf(&text, "[upstreams.http]\nurl = %q\nexpose = \"all\"\n", s.upstream.url+"/mcp")
	fmt.Fprintf(&text, "[upstreams.stdio]\ncommand = %q\nargs = [\"-role\", \"stdio\"]\nexpose = \"all\"\n", self)
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return nil, err
	}
	p, err := start(ctx, "/health", binary, append(args, "--config", file, "--listen")...)
	if err != nil {
		return p, err
	}
	for _, upstream := range []string{"http", "stdio"} {
		if err := calls.Approve(ctx, p.url, folder, upstream); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (s *servers) stop() {
	for _, p := range []*process{s.also, s.hub, s.proxy, s.upstream} {
		if p != nil {
			p.stop()
		}
	}
	_ = os.RemoveAll(s.folder) // the folder is temporary anyhow
}

// process is a server that this program started.
type process struct {
	url string
	cmd *exec.Cmd
}

// start runs a program with a free address as its last argument, and waits until it
// answers at path.
func start(ctx context.Context, path, binary string, args ...string) (*process, error) {
	address, err := calls.FreeAddress()
	if err != nil {
		return nil, err
	}
	p := &process{url: "http://" + address, cmd: exec.CommandContext(ctx, binary, append(args, address)...)}
	if binary != os.Args[0] {
		p.cmd.Env = append(os.Environ(), "HOME="+os.TempDir())
	}
	p.cmd.Stdout = os.Stderr
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	for range 500 {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
		if err != nil {
			return p, err
		}
		if answer, err := http.DefaultClient.Do(r); err == nil {
			_ = answer.Body.Close()
			return p, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return p, fmt.Errorf("%s %v does not answer", binary, args)
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(os.Interrupt)
	done := time.AfterFunc(5*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer done.Stop()
	_ = p.cmd.Wait() // it was interrupted
}

// cpu is the user and system time that the threads of the process have used.
func (p *process) cpu() (sum time.Duration, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for _, file := range threads {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		var used time.Duration
		if _, err := fmt.Sscan(string(text), &used); err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
		sum += used
	}
	return sum, nil
}

// profile writes what the hub spends CPU on, and what it allocates, while the rows that
// it serves are called.
func (l load) profile(ctx context.Context, hub *process, rows []row, file string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	profiles := "http://" + profileAddress(strings.TrimPrefix(hub.url, "http://"))
	called := make(chan error, 1)
	seconds := max(1, int(l.length.Seconds()))
	go func() {
		for end := time.Now().Add(time.Duration(seconds+1) * time.Second); time.Now().Before(end); {
			for _, r := range rows {
				if r.server != hub {
					continue
				}
				if _, err := r.measure(ctx, l.counts[0], time.Second); err != nil {
					called <- err
					return
				}
			}
		}
		called <- nil
	}()
	err := save(ctx, fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", profiles, seconds), file)
	return errors.Join(err, save(ctx, profiles+"/debug/pprof/allocs", file+".allocs"), <-called)
}

// settled is how long the hub rests before its memory is read.
const settled = time.Minute

// memory prints the memory of the hub at rest, after calls, and when it rests again.
func (l load) memory(ctx context.Context, hub *process, rows []row, calls int, to io.Writer) error {
	time.Sleep(settled)
	hub.printMemory(to, "at rest")
	for _, r := range rows {
		for done := 0; r.server == hub && done < calls; {
			n, err := r.call(ctx, l.counts[0], l.length)
			if err != nil {
				return err
			}
			done += n
		}
	}
	hub.printMemory(to, "after the calls")
	time.Sleep(settled)
	hub.printMemory(to, "a minute later")
	return nil
}

// printMemory prints what the process has in memory: its own, such as heap and stacks, and
// all, with pages of files such as its program.
func (p *process) printMemory(to io.Writer, when string) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid)) // a process that has ended has none
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "RssAnon") || strings.HasPrefix(line, "VmRSS") {
			fmt.Fprintf(to, "%s: %s", when, line)
		}
	}
}

func save(ctx context.Context, url, file string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o600)
}

// load is how long, how often and with how many clients rows are measured.
type load struct {
	length time.Duration
	rounds int
	counts calls.Counts
}

// results are the costs of every row in every round, by number of clients.
type results struct {
	rows   []row
	counts calls.Counts
	costs  map[int][][]cost // by number of clients, row and round
}

// run measures all rows in each round.
func (l load) run(ctx context.Context, rows []row) (results, error) {
	all := results{rows, l.counts, map[int][][]cost{}}
	for _, clients := range l.counts {
		all.costs[clients] = make([][]cost, len(rows))
	}
	for range l.rounds {
		for _, clients := range l.counts {
			for i, r := range rows {
				c, err := r.measure(ctx, clients, l.length)
				if err != nil {
					return all, fmt.Errorf("%s: %w", r.name, err)
				}
				all.costs[clients][i] = append(all.costs[clients][i], c)
			}
		}
	}
	return all, nil
}

// print writes a table for each number of clients.
func (all results) print(to io.Writer) error {
	for _, clients := range all.counts {
		costs := all.costs[clients]
		fmt.Fprintf(to, "\nclients: %d\n", clients)
		table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "row\tp50\tCPU/call\tof the reverse proxy\tof the other binary")
		for i, r := range all.rows {
			cells := []string{
				r.name, median(costs[i], func(n int) float64 { return costs[i][n].p50.Seconds() * 1000 }, "%.2f ms"),
				median(costs[i], func(n int) float64 { return costs[i][n].cpu.Seconds() * 1000 }, "%.3f ms"),
			}
			for _, other := range []int{r.proxy, r.also} {
				cell := "-"
				if other >= 0 {
					cell = median(costs[i], func(n int) float64 { return float64(costs[i][n].cpu) / float64(costs[other][n].cpu) }, "%.2fx")
				}
				cells = append(cells, cell)
			}
			fmt.Fprintln(table, strings.Join(cells, "\t"))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// median is the middle of what value returns for each round.
func median(rounds []cost, value func(round int) float64, format string) string {
	values := make([]float64, len(rounds))
	for n := range rounds {
		values[n] = value(n)
	}
	slices.Sort(values)
	return fmt.Sprintf(format, (values[(len(values)-1)/2]+values[len(values)/2])/2)
}
