// Command hub measures what the hub adds to a call: a client calls an echo tool
// directly and through the hub, in each pair of protocol eras, alone and with
// others beside it. Server, hub and client are three processes, so that the
// hub's processor time and garbage can be told from the rest: user and system time
// of its process, as the kernel counts them, divided by the calls. The hub is all of
// luanette serve, without telemetry. Beside it stands the least that anything in
// its place could cost in Go: the standard library's reverse proxy, which copies
// bytes and looks at nothing. It also tells what open sessions hold in memory.
//
//	go run ./bench/hub [-for 300ms] [-clients 1,16,64] [-rounds 10] [-guards]
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
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/luanette/luanette/bench/calls"
)

func main() {
	l := load{counts: calls.Counts{1, 16, 64}}
	var (
		role     = flag.String("role", "", "serve as upstream, hub or proxy; used by the program itself")
		listen   = flag.String("listen", "", "where to serve; used by the program itself")
		upstream = flag.String("upstream", "", "what to stand in front of; used by the program itself")
		door     = flag.String("door", "", "where the hub listens; used by the program itself")
		guarded  = flag.String("guarded", "", "on or off; used by the program itself")
		guards   = flag.Bool("guards", false, "measure pins, policy and audit, all on against all off")
		profile  = flag.String("profile", "", "write a profile of the hub here, and measure nothing else")
	)
	flag.DurationVar(&l.length, "for", 300*time.Millisecond, "how long to measure each row in a round")
	flag.IntVar(&l.rounds, "rounds", 10, "rounds; the best of them is shown, and the median of what they spent")
	flag.Var(&l.counts, "clients", "how many clients at a time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case *role == "upstream":
		err = serveUpstream(ctx, *listen)
	case *role == "hub":
		err = serveHub(ctx, *listen, *door, *upstream, *guarded)
	case *role == "proxy":
		err = serveProxy(ctx, *listen, *upstream)
	case *guards:
		err = measureGuards(ctx, l)
	default:
		err = measure(ctx, l, *profile)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/hub:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, l load, profile string) error {
	far, err := start(ctx, "upstream")
	if err != nil {
		return err
	}
	defer far.stop()
	near, err := startHub(ctx, far)
	if err != nil {
		return err
	}
	defer near.stop()
	if profile != "" {
		return way{"", near, "/mcp/modern", "modern"}.profile(ctx, l.counts[0], l.length, profile)
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
	if err := l.report(ctx, ways); err != nil {
		return err
	}
	return weighSessions(ctx, near)
}
