// Command search measures how well tools are found.
//
// Our own sets ask for several hundred tools that we wrote after the model of real
// servers. Weights and word lists were tuned with tuning, heldout and everyday; the sets named
// by a date were written on that day by an author who had not read the tools, and are not
// tuned on. With -sets DIR it also runs public sets from files that are not part of this
// repository; sets.go names their formats.
//
// It prints the share of questions with a right answer among the first five (any@5), with
// all right answers among them (all@5), the same for ten, and the mean reciprocal rank of
// the first right answer (MRR), with 95 % confidence intervals for any@5 and MRR. Then it
// prints the cost of a search among ten thousand tools.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/luanette/luanette/bench/proc"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/catalog"
)

func main() {
	o := options{}
	flag.StringVar(&o.misses, "misses", "", "list the questions of this set without a right answer")
	flag.StringVar(&o.sets, "sets", "", "directory with public sets, one folder each")
	flag.Parse()
	if err := report(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "search:", err)
		os.Exit(1)
	}
}

type options struct{ misses, sets string }

func report(w io.Writer, o options) error {
	tools, err := corpus()
	if err != nil {
		return err
	}
	sets, err := ownSets(tools)
	if err != nil {
		return err
	}
	if o.sets != "" {
		public, err := publicSets(o.sets)
		if err != nil {
			return err
		}
		sets = append(sets, public...)
	}
	fmt.Fprintf(w, "%-26s %5s %5s  %-20s %6s %6s %6s  %s\n", "set", "tools", "asked", "any@5", "all@5", "any@10", "all@10", "MRR")
	for _, s := range sets {
		print(w, s, s.name, measure(s, 1))
		if s.worded() {
			print(w, s, s.name+", 3 wordings", measure(s, 3))
		}
		if o.misses == s.name {
			fmt.Fprintln(w, strings.Join(measure(s, 1).missed, "\n"))
		}
	}
	for _, s := range sets {
		if s.worded() {
			fmt.Fprintf(w, "\n%s, after use:\n", s.name)
			if err := learning(w, s); err != nil {
				return err
			}
		}
	}
	fmt.Fprintln(w)
	return costs(w, tools)
}

func print(w io.Writer, s set, name string, f figures) {
	fmt.Fprintf(w, "%-26s %5d %5d  %-20s %6.3f %6.3f %6.3f  %s\n", name, len(s.tools), len(s.asked), f.any5, f.all5.mean, f.any10.mean, f.all10.mean, f.mrr)
}

// costs prints the CPU time of searches among many tools, and of building the index.
func costs(w io.Writer, tools []tool.Info) error {
	for _, namespaces := range []int{1, 100} {
		many := copies(tools, 10_000, namespaces)
		ms, err := cost(many)
		if err != nil {
			return err
		}
		took, size := building(many)
		fmt.Fprintf(w, "10,000 tools in %d namespaces: %.2f ms of CPU time per search, index built in %d ms of CPU time, %d MB\n",
			namespaces, ms, took.Milliseconds(), size>>20)
	}
	return nil
}

// copies returns copies of the corpus under other names.
func copies(tools []tool.Info, count, namespaces int) []tool.Info {
	many := make([]tool.Info, count)
	for i := range many {
		many[i] = tools[i%len(tools)]
		many[i].Ref = tool.Ref{Space: fmt.Sprintf("space%d", i%namespaces), Name: fmt.Sprintf("%s_%d", many[i].Name, i)}
	}
	return many
}

// cost is the CPU time of one search, in milliseconds, over the tuning questions.
func cost(many []tool.Info) (float64, error) {
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
			c.Search(context.Background(), catalog.Query{Text: q.texts[0]})
		}
	}
	return float64(proc.Self()-before) / 1e6 / float64(turns*len(asked)), nil
}

// building is the CPU time that the first search takes more than the second, and the
// memory that it leaves in use.
func building(many []tool.Info) (time.Duration, uint64) {
	c := catalog.New(catalog.Options{Sources: []tool.Source{source(many)}})
	c.Refresh(context.Background())
	first, empty := proc.Self(), heap()
	c.Search(context.Background(), catalog.Query{Text: "file"})
	second := proc.Self()
	c.Search(context.Background(), catalog.Query{Text: "file"})
	took := second - first - (proc.Self() - second)
	size := heap() - empty
	runtime.KeepAlive(c)
	return took, size
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// source is a list of tools as a tool.Source.
type source []tool.Info

func (s source) Tools(context.Context) ([]tool.Info, error) { return s, nil }

func (s source) Call(context.Context, tool.Call) (tool.Result, error) {
	return tool.Output("done", nil)
}
