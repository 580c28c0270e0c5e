// Command hub measures what the hub adds to a tool call. A client of each protocol era
// calls an echo tool at /mcp and at /mcp/NAME, with the tool's server behind the hub
// over stdio and over HTTP. The same run calls the tool's server directly and through
// httputil.ReverseProxy, which copies bytes and does nothing else.
//
// Audit log, policy, pins and traces are on. Each server is a process of its own. CPU is
// user and system time of that process, divided by the calls. Every round goes through
// all rows, so that other load on the machine affects them alike; ratios are those of a
// round, and the median of all rounds is shown.
//
//	go run ./bench/hub [-clients 1,16] [-for 300ms] [-rounds 9] [-also PATH] [-profile FILE] [-memory CALLS]
//
// With -also, another luanette binary is measured in the same run, and the last column
// is the CPU of this one as a part of the other's.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/luanette/luanette/bench/calls"
)

func main() {
	l := load{counts: calls.Counts{1, 16}}
	var (
		role     = flag.String("role", "", "serve as upstream, stdio, proxy or hub; used by the program itself")
		listen   = flag.String("listen", "", "address to serve on; used by the program itself")
		upstream = flag.String("upstream", "", "URL of the proxy's upstream; used by the program itself")
		config   = flag.String("config", "", "configuration of the hub; used by the program itself")
		also     = flag.String("also", "", "another luanette binary to measure in the same run")
		profile  = flag.String("profile", "", "write a CPU profile of the hub to this file during each row that -row selects, and measure nothing else")
		only     = flag.String("row", "", "measure only rows whose name contains this")
		memory   = flag.Int("memory", 0, "measure the memory of the hub, or of -also, at rest, after so many calls of each row that -row selects and a minute later, and nothing else")
	)
	flag.DurationVar(&l.length, "for", 300*time.Millisecond, "how long to measure each row in a round")
	flag.IntVar(&l.rounds, "rounds", 9, "number of rounds")
	flag.Var(&l.counts, "clients", "numbers of concurrent clients")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch *role {
	case "upstream":
		err = serve(ctx, *listen, calls.Echo().Handler())
	case "stdio":
		err = calls.Echo().ServeStdio(ctx, os.Stdin, os.Stdout)
	case "proxy":
		err = serveProxy(ctx, *listen, *upstream)
	case "hub":
		err = serveHub(ctx, *listen, *config)
	default:
		err = measure(ctx, l, *only, *also, *profile, *memory)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/hub:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, l load, only, also, profile string, memory int) error {
	s, err := startServers(ctx, also)
	defer s.stop()
	if err != nil {
		return err
	}
	rows := s.rows(only)
	switch {
	case profile != "":
		return l.profile(ctx, s.hub, rows, profile)
	case memory > 0:
		return l.memory(ctx, cmp.Or(s.also, s.hub), rows, memory, os.Stdout)
	}
	results, err := l.run(ctx, rows)
	if err != nil {
		return err
	}
	return results.print(os.Stdout)
}

// row is one way by which calls reach the tool.
type row struct {
	name   string
	server *process
	path   string
	era    string // of the client
	tool   string
	proxy  int // index of the reverse proxy's row in the same era; -1 without one
	also   int // index of the other binary's row; -1 without one
}

// rows are all ways to the tool whose names contain a text, and those they are compared
// with.
func (s *servers) rows(only string) []row {
	var rows []row
	for _, era := range []string{calls.Legacy, calls.Modern} {
		title := map[string]string{calls.Legacy: "sessions era", calls.Modern: "stateless era"}[era]
		proxy := len(rows) + 1
		rows = append(rows,
			row{name: title + ", upstream alone", server: s.upstream, path: "/mcp", era: era, tool: "echo", proxy: proxy, also: -1},
			row{name: title + ", reverse proxy", server: s.proxy, path: "/mcp", era: era, tool: "echo", proxy: proxy, also: -1})
		for _, over := range []string{"http", "stdio"} {
			for _, path := range []string{"/mcp", "/mcp/" + over} {
				r := row{name: title + ", " + path + " over " + over, server: s.hub, path: path, era: era, tool: "echo", proxy: -1, also: -1}
				if path == "/mcp" {
					r.tool = over + "__echo"
				}
				if over == "http" {
					r.proxy = proxy
				}
				if !strings.Contains(r.name, only) {
					continue
				}
				if s.also != nil {
					other := r
					other.name, other.server = r.name+", other binary", s.also
					r.also = len(rows)
					rows = append(rows, other)
				}
				rows = append(rows, r)
			}
		}
	}
	return rows
}

// cost is what one call took in a round: half of the calls at most p50, and the server's
// CPU for each.
type cost struct{ p50, cpu time.Duration }

// call calls for a while and returns how often.
func (r row) call(ctx context.Context, clients int, length time.Duration) (int, error) {
	callers, err := calls.Connect(ctx, r.server.url+r.path, r.era, r.tool, clients)
	if err != nil {
		return 0, err
	}
	defer callers.Close()
	times, err := callers.Call(ctx, length)
	return len(times), err
}

// measure calls for a while, after a shorter while to warm up.
func (r row) measure(ctx context.Context, clients int, length time.Duration) (c cost, err error) {
	callers, err := calls.Connect(ctx, r.server.url+r.path, r.era, r.tool, clients)
	if err != nil {
		callers.Close()
		return c, err
	}
	defer callers.Close()
	if _, err := callers.Call(ctx, length/4); err != nil {
		return c, err
	}
	before, err := r.server.cpu()
	if err != nil {
		return c, err
	}
	times, err := callers.Call(ctx, length)
	if err != nil {
		return c, err
	}
	after, err := r.server.cpu()
	return cost{calls.Quantile(times, 50), (after - before) / time.Duration(max(1, len(times)))}, err
}
