// Command hub measures what the hub adds to a call: a client calls an echo tool
// directly and through the hub, in each pair of protocol eras, alone and with
// others beside it. Server, hub and client are three processes, so that the
// hub's processor time and garbage can be told from the rest: user and system time
// of its process, as the kernel counts them, divided by the calls. The hub is all of
// luanette serve, without telemetry. Beside it stands the least that anything in
// its place could cost in Go: the standard library's reverse proxy, which copies
// bytes and looks at nothing. It also tells what open sessions hold in memory.
//
//	go run ./bench/hub [-for 1s] [-clients 1,16,64] [-rounds 3] [-guards]
//
// Other users of a machine make it slower, never faster, so of several rounds the
// one counts in which a call took the least processor time.
//
// With -guards it measures instead what pins, policy, labels and the audit log cost:
// a hub with all of them on beside one with all off.
//
// With -profile FILE the hub's processor time with the first number of clients, in
// the newer era, is profiled instead.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/bench/calls"
)

func main() {
	var (
		role     = flag.String("role", "", "serve as upstream or hub; used by the program itself")
		listen   = flag.String("listen", "", "where to serve")
		upstream = flag.String("upstream", "", "what the hub stands in front of")
		length   = flag.Duration("for", time.Second, "how long to measure each row in a round")
		rounds   = flag.Int("rounds", 3, "rounds, of which the best counts")
		clients  = flag.String("clients", "1,16,64", "how many clients at a time")
		door     = flag.String("door", "", "where the hub listens; used by the program itself")
		guards   = flag.Bool("guards", false, "measure pins, policy and audit, all on against all off")
		guarded  = flag.String("guarded", "", "on or off; used by the program itself")
		profile  = flag.String("profile", "", "write a profile of the hub here, and measure nothing else")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch *role {
	case "upstream":
		err = serveUpstream(ctx, *listen)
	case "hub":
		err = serveHub(ctx, *listen, *door, *upstream, *guarded)
	case "proxy":
		err = serveProxy(ctx, *listen, *upstream)
	case "":
		if *guards {
			err = measureGuards(ctx, load{*length, *rounds}, *clients)
			break
		}
		err = measure(ctx, load{*length, *rounds}, *clients, *profile)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/hub:", err)
		os.Exit(1)
	}
}

// load is how long and how often a row is measured.
type load struct {
	length time.Duration
	rounds int
}

func measure(ctx context.Context, l load, clients, profile string) error {
	counts, err := parseCounts(clients)
	if err != nil {
		return err
	}
	far, err := start(ctx, "upstream")
	if err != nil {
		return err
	}
	defer far.stop()
	door, err := calls.FreeAddress()
	if err != nil {
		return err
	}
	near, err := start(ctx, "hub", "-upstream", far.url+"/mcp", "-door", door)
	if err != nil {
		return err
	}
	defer near.stop()
	near.mcp = "http://" + door
	if profile != "" {
		return way{"", near, "/mcp/modern", "modern"}.profile(ctx, counts[0], l.length, profile)
	}
	plain, err := start(ctx, "proxy", "-upstream", far.url)
	if err != nil {
		return err
	}
	defer plain.stop()
	ways := []way{
		{"direct, legacy", far, "/mcp", "legacy"}, {"direct, modern", far, "/mcp", "modern"},
		{"reverse proxy, legacy", plain, "/mcp", "legacy"}, {"reverse proxy, modern", plain, "/mcp", "modern"},
	}
	for _, era := range eras {
		for _, behind := range eras {
			ways = append(ways, way{era + " client, " + behind + " upstream", near, "/mcp/" + behind, era})
		}
	}
	if err := l.report(ctx, ways, counts); err != nil {
		return err
	}
	return weighSessions(ctx, near)
}

func parseCounts(list string) ([]int, error) {
	var counts []int
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-clients %q: want numbers like 1,16,64", list)
		}
		counts = append(counts, n)
	}
	return counts, nil
}

// way is how calls reach the tool.
type way struct {
	name   string
	server *process
	path   string
	era    string // of the client
}

// report measures what the servers spend while clients call them. Every round
// goes through all rows, so that what else happens on the machine hits them alike.
func (l load) report(ctx context.Context, ways []way, counts []int) error {
	best := make([]cost, len(ways)*len(counts))
	for round := range l.rounds {
		for i := range best {
			w, clients := ways[i/len(counts)], counts[i%len(counts)]
			c, err := w.round(ctx, clients, l.length)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			if round == 0 || c.cpu < best[i].cpu {
				best[i] = c
			}
		}
	}
	if err := row("way", "clients", "p50", "p99", "calls/s", "CPU/call", "garbage/call", "allocations/call"); err != nil {
		return err
	}
	for i, c := range best {
		err := row(ways[i/len(counts)].name, strconv.Itoa(counts[i%len(counts)]), calls.Quantile(c.times, 50).String(), calls.Quantile(c.times, 99).String(),
			strconv.Itoa(int(float64(len(c.times))/l.length.Seconds())),
			c.cpu.Round(time.Microsecond).String(), fmt.Sprintf("%.1f KB", float64(c.bytes)/1000), strconv.FormatUint(c.objects, 10))
		if err != nil {
			return err
		}
	}
	return nil
}

// cost is what a round took: every call, and the server for one.
type cost struct {
	times          []time.Duration
	cpu            time.Duration
	bytes, objects uint64
}

// round measures one, after a moment to get warm.
func (w way) round(ctx context.Context, clients int, length time.Duration) (c cost, err error) {
	if _, err := calls.Many(ctx, w.server.mcp+w.path, w.era, clients, length/4); err != nil {
		return c, err
	}
	before, err := w.server.usage(ctx)
	if err != nil {
		return c, err
	}
	if c.times, err = calls.Many(ctx, w.server.mcp+w.path, w.era, clients, length); err != nil {
		return c, err
	}
	after, err := w.server.usage(ctx)
	n := uint64(max(1, len(c.times)))
	c.cpu = (after.CPU - before.CPU) / time.Duration(n)
	c.bytes, c.objects = (after.Bytes-before.Bytes)/n, (after.Objects-before.Objects)/n
	return c, err
}

// profile writes what the server's processor time is spent on.
func (w way) profile(ctx context.Context, clients int, length time.Duration, file string) error {
	loaded := make(chan error, 1)
	go func() {
		_, err := calls.Many(ctx, w.server.mcp+w.path, w.era, clients, length+time.Second)
		loaded <- err
	}()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", w.server.url, max(1, int(length.Seconds()))), nil)
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
	err = errors.Join(os.WriteFile(file, data, 0o600), <-loaded)
	r2, _ := http.NewRequestWithContext(ctx, http.MethodGet, w.server.url+"/debug/pprof/allocs", nil)
	a2, err2 := http.DefaultClient.Do(r2)
	if err2 != nil {
		return err2
	}
	defer a2.Body.Close()
	d2, _ := io.ReadAll(a2.Body)
	return errors.Join(err, os.WriteFile(file+".allocs", d2, 0o600))
}

func row(cells ...string) error {
	_, err := fmt.Println("| " + strings.Join(cells, " | ") + " |")
	return err
}
