// Command load measures nodes on one Postgres: one to three processes of the real program
// on a real Postgres that commits to disk, called by clients of this process. The loads
// are calls that are relayed to an upstream, jobs that call it three times, chat turns with
// a fake model, and all of them mixed. It also measures what policy, pins and the audit log
// add to a relayed call.
//
//	go run ./bench/load [-for 4s] [-clients 32] [-nodes 1,2,3] [-rounds 2] [-only WORDS] [-program FILE] [-json FILE]
//
// On a small machine clients, upstream, nodes and Postgres share its CPUs, so the rate per
// second depends on the machine; compare the CPU time per operation. Other load on the
// machine only adds to it, so the round counts in which nodes and Postgres took the least.
// -json writes the figures for bench/scale.
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
	flag.Var(&b.nodes, "nodes", "numbers of nodes")
	flag.DurationVar(&b.length, "for", 4*time.Second, "how long to measure each row in a round")
	flag.IntVar(&b.clients, "clients", 32, "number of concurrent clients")
	flag.IntVar(&b.rounds, "rounds", 2, "number of rounds; the best counts")
	flag.StringVar(&b.only, "only", "", "measure only loads whose name contains this")
	flag.StringVar(&b.program, "program", "", "measure this build of luanette; by default it is built from this module")
	flag.StringVar(&b.file, "json", "", "write the figures to this file")
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
	only            string // part of a load's name
	file, program   string
}

// serveUpstream serves the upstream of the nodes.
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
	if strings.Contains("checks", b.only) {
		print("")
		checked, err := b.checks(ctx, f)
		if err != nil {
			return err
		}
		all = append(all, checked...)
	}
	if b.file == "" {
		return nil
	}
	return write(b.file, all)
}

// withNodes measures every load on n nodes.
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

// checks compares a node with all checks on with one with all off.
func (b bench) checks(ctx context.Context, f *fleet) ([]figure, error) {
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
			found, err := b.once(ctx, f, sides[side], load{"checks " + side + ": a relayed call", relayed})
			if err != nil {
				return nil, err
			}
			if round == 0 || found.NodeCPU < best[side].NodeCPU {
				best[side] = found
			}
		}
	}
	print(head, strings.Repeat("|---", strings.Count(head, "|")-1)+"|", best["off"].row(), best["on"].row(), "",
		fmt.Sprintf("Policy, pins, labels and the audit log add %.0f µs of CPU time of the node to a relayed call, %.2f times the time without them.",
			best["on"].NodeCPU-best["off"].NodeCPU, best["on"].NodeCPU/best["off"].NodeCPU))
	return []figure{best["off"], best["on"]}, nil
}

func print(lines ...string) { fmt.Println(strings.Join(lines, "\n")) }
