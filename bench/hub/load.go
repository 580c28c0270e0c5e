package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/luanette/luanette/bench/calls"
)

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
