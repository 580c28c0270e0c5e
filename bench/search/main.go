// Command search measures how well tools are found, with two sets of questions over several
// hundred tools that we wrote after the model of real servers. Weights and word lists were
// tuned with one set only; the other was written at the same time. It prints the share of
// questions with a right answer among the first five (recall@5), the mean reciprocal rank
// of the first right answer (MRR), and the CPU time of a search among ten thousand tools.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/luanette/luanette/bench/proc"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/catalog"
)

func main() {
	misses := flag.Bool("misses", false, "list the questions of the tuning set without a right answer")
	flag.Parse()
	if err := report(os.Stdout, *misses); err != nil {
		fmt.Fprintln(os.Stderr, "search:", err)
		os.Exit(1)
	}
}

func report(w io.Writer, misses bool) error {
	tools, err := corpus()
	if err != nil {
		return err
	}
	c := catalog.New(catalog.Options{Sources: []tool.Source{source(tools)}})
	fmt.Fprintf(w, "%d tools of %d servers\n\n%-10s %9s %9s %9s\n", len(tools), len(c.Namespaces(context.Background())), "set", "questions", "recall@5", "MRR")
	for _, set := range []string{"tuning", "heldout"} {
		asked, err := questions(set)
		if err != nil {
			return err
		}
		s := measure(c, asked)
		fmt.Fprintf(w, "%-10s %9d %9.4f %9.4f\n", set, len(asked), s.recall, s.mrr)
		if misses && set == "tuning" {
			fmt.Fprintln(w, strings.Join(s.missed, "\n"))
		}
	}
	fmt.Fprintln(w)
	for _, namespaces := range []int{1, 100} {
		ms, err := cost(tools, 10_000, namespaces)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "10,000 tools in %d namespaces: %.2f ms of CPU time per search\n", namespaces, ms)
	}
	return nil
}

// score is how well a set of questions was answered.
type score struct {
	recall, mrr float64
	missed      []string
}

func measure(c *catalog.Catalog, asked []question) score {
	var s score
	for _, q := range asked {
		hits, _ := c.Search(context.Background(), catalog.Query{Text: q.text, Limit: 20})
		at := slices.IndexFunc(hits, func(h catalog.Hit) bool { return slices.Contains(q.want, h.Ref.String()) })
		if at >= 0 {
			s.mrr += 1 / float64(at+1)
		}
		if at >= 0 && at < 5 {
			s.recall++
			continue
		}
		var got []string
		for _, h := range hits[:min(len(hits), 5)] {
			got = append(got, h.Ref.String())
		}
		s.missed = append(s.missed, fmt.Sprintf("  %s: %v at %d; got %v", q.text, q.want, at+1, got))
	}
	s.recall /= float64(len(asked))
	s.mrr /= float64(len(asked))
	return s
}

// cost is the CPU time of one search among many tools, in milliseconds: the tuning
// questions over copies of the corpus under other names.
func cost(tools []tool.Info, count, namespaces int) (float64, error) {
	many := make([]tool.Info, count)
	for i := range many {
		many[i] = tools[i%len(tools)]
		many[i].Ref = tool.Ref{Space: fmt.Sprintf("space%d", i%namespaces), Name: fmt.Sprintf("%s_%d", many[i].Name, i)}
	}
	c := catalog.New(catalog.Options{Sources: []tool.Source{source(many)}})
	asked, err := questions("tuning")
	if err != nil {
		return 0, err
	}
	c.Search(context.Background(), catalog.Query{Text: "warm up"})
	const turns = 5
	before := proc.Self()
	for range turns {
		for _, q := range asked {
			c.Search(context.Background(), catalog.Query{Text: q.text})
		}
	}
	return float64(proc.Self()-before) / 1e6 / float64(turns*len(asked)), nil
}

// source is a list of tools as a tool.Source.
type source []tool.Info

func (s source) Tools(context.Context) ([]tool.Info, error) { return s, nil }

func (s source) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Output("done", nil)
}
