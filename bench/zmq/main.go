// Command zmq compares the cost of a tool call over ZeroMQ, with bodies in JSON and in
// MessagePack, with the same call over HTTP. hootserver and the hub serve the same tools,
// each in a process of its own. One or more
// callers call them through the connection manager. Turns alternate, so that other load on
// the machine affects both alike.
//
//	go run ./bench/zmq [-for 2s] [-turns 3] [-callers 1,16,64] [-bytes 100]
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/luanette/luanette/bench/proc"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/zmq/hootserver"
)

func main() {
	var (
		role    = flag.String("role", "", "serve as zmq, msgpack or http; used by the program itself")
		length  = flag.Duration("for", 2*time.Second, "how long to measure each turn")
		turns   = flag.Int("turns", 3, "number of turns; the best counts")
		callers = flag.String("callers", "1,16,64", "numbers of concurrent callers")
		bytes   = flag.Int("bytes", 100, "length of the text that is echoed")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, *role, *length, *turns, *callers, *bytes)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/zmq:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, role string, length time.Duration, turns int, callers string, bytes int) error {
	switch role {
	case "zmq", "msgpack":
		return serveZMQ(ctx, role == "msgpack")
	case "http":
		return serveHTTP(ctx)
	}
	var counts []int
	for word := range strings.SplitSeq(callers, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return fmt.Errorf("-callers %q: want numbers like 1,16,64", callers)
		}
		counts = append(counts, n)
	}
	args, err := json.Marshal(map[string]string{"text": strings.Repeat("x", bytes)})
	if err != nil {
		return err
	}
	return measure(ctx, counts, turns, length, args)
}

// echo is the source of tools that both serve.
type echo struct{}

func (echo) Tools(context.Context) ([]tool.Info, error) {
	schema := json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)
	raw := json.RawMessage(`{"name":"echo","description":"Returns its arguments","inputSchema":` + string(schema) + `,"annotations":{"readOnlyHint":true}}`)
	return []tool.Info{{Ref: tool.Ref{Name: "echo"}, Description: "Returns its arguments", Input: schema, Hints: tool.Hints{ReadOnly: true}, Raw: raw}}, nil
}

func (echo) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	var in struct{ Text string }
	if err := json.Unmarshal(call.Args, &in); err != nil {
		return tool.Result{}, err
	}
	return tool.Output(in.Text, map[string]string{"text": in.Text})
}

func serveZMQ(ctx context.Context, packed bool) error {
	b, err := hootserver.Listen(ctx, hootserver.Options{Name: "bench", OfferMsgPack: packed, Listen: "tcp://127.0.0.1:0", Broadcast: "tcp://127.0.0.1:0", Source: echo{}})
	if err != nil {
		return err
	}
	fmt.Println("zmq+" + b.Addr())
	return b.Serve(ctx)
}

func serveHTTP(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	echoHub := hub.New(hub.Options{Name: "bench", Version: "1", Tools: echo{}})
	server := &http.Server{Handler: echoHub.Handler(), ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	fmt.Printf("http://%s/mcp\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// server is a process that serves the tools over ZeroMQ or HTTP.
type server struct {
	role string
	url  string
	cmd  *exec.Cmd
}

func start(ctx context.Context, role string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &server{role: role, cmd: exec.CommandContext(ctx, self, "-role", role)}
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	s.url = strings.TrimSpace(line)
	return s, err
}

func (s *server) stop() {
	_ = s.cmd.Process.Kill() // it has no state
	_ = s.cmd.Wait()
}

// figures are the results of one turn.
type figures struct {
	p50, p99 time.Duration
	perSec   float64
	client   time.Duration // CPU time per call of this process
	server   time.Duration // CPU time per call of the server
}

func measure(ctx context.Context, counts []int, turns int, length time.Duration, args json.RawMessage) error {
	ways := []string{"http", "zmq", "msgpack"}
	servers := map[string]*server{}
	bus := event.New(event.BusOptions{})
	connected := bus.Subscribe(event.Options{Types: []string{"upstream.connected"}})
	defer connected.Close()
	manager := upstream.New(upstream.Options{Events: bus})
	defer manager.Close()
	for _, role := range ways {
		s, err := start(ctx, role)
		if err != nil {
			return err
		}
		defer s.stop()
		servers[role] = s
		if err := manager.Add(upstream.Spec{Name: role, Settings: upstream.Settings{URL: s.url}, Trusted: true}); err != nil {
			return err
		}
		if _, err := connected.Next(ctx); err != nil {
			return err
		}
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "callers\tway\tp50\tp99\tcalls/s\tclient CPU/call\tserver CPU/call\t")
	for _, callers := range counts {
		best := map[string]figures{}
		for range turns {
			for _, way := range ways {
				f, err := turn(ctx, manager, servers[way], callers, length, args)
				if err != nil {
					return fmt.Errorf("%s: %w", way, err)
				}
				if was, ok := best[way]; !ok || f.perSec > was.perSec {
					best[way] = f
				}
			}
		}
		for _, way := range ways {
			f := best[way]
			fmt.Fprintf(out, "%d\t%s\t%v\t%v\t%.0f\t%v\t%v\t\n", callers, way, micro(f.p50), micro(f.p99), f.perSec, micro(f.client), micro(f.server))
		}
		compare(out, callers, "http/zmq", best["http"], best["zmq"])
		compare(out, callers, "msgpack/zmq", best["msgpack"], best["zmq"])
	}
	return out.Flush()
}

// compare prints the ratios of two ways.
func compare(out io.Writer, callers int, names string, a, b figures) {
	fmt.Fprintf(out, "%d\t%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t\n", callers, names,
		ratio(a.p50, b.p50), ratio(a.p99, b.p99), a.perSec/b.perSec, ratio(a.client, b.client), ratio(a.server, b.server))
}

func micro(d time.Duration) time.Duration { return d.Round(time.Microsecond) }
func ratio(a, b time.Duration) float64    { return float64(a) / float64(max(b, 1)) }

// turn calls without pause for a while.
func turn(ctx context.Context, manager *upstream.Manager, s *server, callers int, length time.Duration, args json.RawMessage) (figures, error) {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var mu sync.Mutex
	var all []time.Duration
	var failed error
	client := proc.Self()
	server, err := proc.Of(s.cmd.Process.Pid)
	if err != nil {
		return figures{}, err
	}
	began := time.Now()
	var work sync.WaitGroup
	for range callers {
		work.Go(func() {
			took, err := calls(ctx, manager, s.role, args)
			mu.Lock()
			defer mu.Unlock()
			all, failed = append(all, took...), errors.Join(failed, err)
		})
	}
	work.Wait()
	elapsed := time.Since(began)
	if failed != nil || len(all) == 0 {
		return figures{}, errors.Join(failed, ctx.Err())
	}
	client = proc.Self() - client
	after, err := proc.Of(s.cmd.Process.Pid)
	if err != nil {
		return figures{}, err
	}
	slices.Sort(all)
	n := time.Duration(len(all))
	return figures{
		p50: all[len(all)/2], p99: all[len(all)*99/100], perSec: float64(len(all)) / elapsed.Seconds(),
		client: client / n, server: after.Sub(server).CPU / n,
	}, nil
}

// calls is one caller's turn.
func calls(ctx context.Context, manager *upstream.Manager, space string, args json.RawMessage) ([]time.Duration, error) {
	var took []time.Duration
	for ctx.Err() == nil {
		began := time.Now()
		result, err := manager.Call(ctx, tool.Call{Ref: tool.Ref{Space: space, Name: "echo"}, Args: args})
		switch {
		case ctx.Err() != nil: // the turn has ended
		case err != nil:
			return nil, err
		case len(result.Raw) < len(args):
			return nil, fmt.Errorf("answered %s", result.Raw)
		default:
			took = append(took, time.Since(began))
		}
	}
	return took, nil
}
