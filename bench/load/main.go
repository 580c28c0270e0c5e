// Command load measures what nodes on one Postgres carry: the real program, one to
// three processes of it, against a real Postgres whose commits are on disk, called
// by clients of this process. Loads are calls that are relayed to an upstream,
// jobs that call it three times, from being submitted to their stored end, turns
// of chat with a stand-in model, and all of them mixed. Beside them stands what
// policy, pins and the audit log add to a relayed call: on against off, in turns.
//
//	go run ./bench/load [-for 4s] [-clients 32] [-nodes 1,2,3] [-rounds 2] [-only WORDS] [-program FILE] [-json FILE]
//
// On a small machine clients, upstream, nodes and Postgres share its processors,
// and what is done per second says more about the machine than about us: the
// processor time that each of them takes for one call is what counts. Other users
// of a machine make it slower, never faster, so of several rounds the one counts
// in which nodes and Postgres took the least. -json writes the figures as
// bench/scale reads them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/bench/calls"
)

func main() {
	var (
		b      = bench{nodes: calls.Counts{1, 2, 3}}
		listen = flag.String("upstream", "", "serve as the upstream here; used by the program itself")
	)
	flag.Var(&b.nodes, "nodes", "how many nodes at a time")
	flag.DurationVar(&b.length, "for", 4*time.Second, "how long to measure each row in a round")
	flag.IntVar(&b.clients, "clients", 32, "clients at once")
	flag.IntVar(&b.rounds, "rounds", 2, "rounds, of which the best counts")
	flag.StringVar(&b.only, "only", "", "measure only loads whose name contains this")
	flag.StringVar(&b.program, "program", "", "measure this build of luanette; by default it is built from this module")
	flag.StringVar(&b.file, "json", "", "write the figures here")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *listen != "" {
		err = serveUpstream(ctx, *listen)
	} else {
		err = b.run(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/load:", err)
		os.Exit(1)
	}
}

type bench struct {
	length          time.Duration
	clients, rounds int
	nodes           calls.Counts
	only            string // words of a load's name
	file, program   string
}

// serveUpstream is the server behind the nodes.
func serveUpstream(ctx context.Context, address string) error {
	server := &http.Server{Addr: address, Handler: calls.Echo().Handler(), ReadHeaderTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ListenAndServe(); ctx.Err() == nil {
		return err
	}
	return nil
}

func (b bench) run(ctx context.Context) error {
	f, err := newFleet(ctx, b.program)
	if err != nil {
		return err
	}
	err = b.measure(ctx, f)
	return errors.Join(err, f.close())
}

func (b bench) measure(ctx context.Context, f *fleet) error {
	var all []figure
	print(head, strings.Repeat("|---", strings.Count(head, "|")-1)+"|")
	for _, n := range b.nodes {
		found, err := b.withNodes(ctx, f, n)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	if strings.Contains("guards", b.only) {
		print("")
		guarded, err := b.guards(ctx, f)
		if err != nil {
			return err
		}
		all = append(all, guarded...)
	}
	if b.file == "" {
		return nil
	}
	return write(b.file, all)
}

// withNodes measures every load on so many nodes.
func (b bench) withNodes(ctx context.Context, f *fleet, n int) ([]figure, error) {
	nodes, err := f.start(ctx, n, "")
	if err != nil {
		return nil, err
	}
	defer nodes.stop()
	hash, err := nodes.store(ctx, jobScript)
	if err != nil {
		return nil, err
	}
	var best []figure
	wanted := slices.DeleteFunc(loads(hash), func(l load) bool { return !strings.Contains(l.name, b.only) })
	for round := range b.rounds {
		for i, l := range wanted {
			found, err := b.once(ctx, f, nodes, l)
			if err != nil {
				return nil, fmt.Errorf("%s on %d nodes: %w", l.name, n, err)
			}
			if round == 0 {
				best = append(best, found)
			} else if found.cost() < best[i].cost() {
				best[i] = found
			}
		}
	}
	for _, one := range best {
		print(one.row())
	}
	return best, nil
}

// guards puts a node with all guards on beside one with all off.
func (b bench) guards(ctx context.Context, f *fleet) ([]figure, error) {
	sides := map[string]*nodes{}
	for _, side := range []string{"off", "on"} {
		started, err := f.start(ctx, 1, side)
		if err != nil {
			return nil, err
		}
		defer started.stop()
		sides[side] = started
	}
	if err := calls.Approve(ctx, sides["on"].url(0), upstreamName); err != nil {
		return nil, err
	}
	best := map[string]figure{}
	for round := range max(3, b.rounds) {
		for _, side := range []string{"off", "on"} {
			found, err := b.once(ctx, f, sides[side], load{"guards " + side + ": a relayed call", relayed})
			if err != nil {
				return nil, err
			}
			if round == 0 || found.NodeCPU < best[side].NodeCPU {
				best[side] = found
			}
		}
	}
	print(head, strings.Repeat("|---", strings.Count(head, "|")-1)+"|", best["off"].row(), best["on"].row(), "",
		fmt.Sprintf("Policy, pins, labels and the audit log add %.0f µs of the node's processor time to a relayed call, %.2f times what it takes without.",
			best["on"].NodeCPU-best["off"].NodeCPU, best["on"].NodeCPU/best["off"].NodeCPU))
	return []figure{best["off"], best["on"]}, nil
}

func print(lines ...string) { fmt.Println(strings.Join(lines, "\n")) }
