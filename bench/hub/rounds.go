package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/bench/calls"
)

// load is how long, how often and with how many clients a row is measured.
type load struct {
	length time.Duration
	rounds int
	counts calls.Counts
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
func (l load) report(ctx context.Context, ways []way) error {
	counts := l.counts
	best := make([]cost, len(ways)*len(counts))
	spent := make([][]time.Duration, len(best)) // in every round
	for round := range l.rounds {
		for i := range best {
			w, clients := ways[i/len(counts)], counts[i%len(counts)]
			c, err := w.round(ctx, clients, l.length)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			spent[i] = append(spent[i], c.cpu)
			if round == 0 || c.cpu < best[i].cpu {
				best[i] = c
			}
		}
	}
	if err := row("way", "clients", "p50", "p99", "calls/s", "CPU/call, best", "median", "garbage/call", "allocations/call"); err != nil {
		return err
	}
	for i, c := range best {
		err := row(ways[i/len(counts)].name, strconv.Itoa(counts[i%len(counts)]), calls.Quantile(c.times, 50).String(), calls.Quantile(c.times, 99).String(),
			strconv.Itoa(int(float64(len(c.times))/l.length.Seconds())),
			c.cpu.Round(time.Microsecond).String(), middle(spent[i]).Round(time.Microsecond).String(), fmt.Sprintf("%.1f KB", float64(c.bytes)/1000), strconv.FormatUint(c.objects, 10))
		if err != nil {
			return err
		}
	}
	return nil
}

// middle is the median.
func middle(spent []time.Duration) time.Duration {
	slices.Sort(spent)
	return (spent[(len(spent)-1)/2] + spent[len(spent)/2]) / 2
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

func row(cells ...string) error {
	_, err := fmt.Println("| " + strings.Join(cells, " | ") + " |")
	return err
}
