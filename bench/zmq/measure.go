package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/luanette/luanette/bench/proc"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

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
		if err := manager.Add(upstream.Spec{Name: role, URL: s.url, Trusted: true}); err != nil {
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
