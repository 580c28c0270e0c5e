// Command search measures how well tools are found.
//
// Our own sets ask for several hundred tools that we wrote after the model of real
// servers. Weights and word lists were tuned with tuning, heldout and everyday; the sets named
// by a date were written on that day by an author who had not read the tools, and are not
// tuned on. With -sets DIR it also runs public sets from files that are not part of this
// repository; sets.go names their formats.
//
// It prints the share of questions with a right answer among the first five (any@5) and
// the mean reciprocal rank of the first right answer (MRR), both with the range in which
// they lie in 95 % of bootstrap resamples, and how far they are from those of plain BM25 in
// the same run. Then it prints the cost of a search among 100, 1,000 and 10,000 tools.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/bench/proc"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/usage"
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
	fmt.Fprintf(w, "%-26s %5s %5s  %-20s  %-20s  %-23s  %s\n", "set", "tools", "asked", "any@5", "MRR", "any@5 beyond BM25", "MRR beyond BM25")
	for _, s := range sets {
		f := measure(s, 1)
		print(w, s, s.name, f)
		if s.worded() {
			print(w, s, s.name+", 3 wordings", measure(s, 3))
		}
		if o.misses == s.name {
			fmt.Fprintln(w, strings.Join(f.missed, "\n"))
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
	weak(w, sets)
	return costs(w, tools)
}

// print prints the figures of a set, and how far they are from those of BM25.
func print(w io.Writer, s set, name string, f figures) {
	find := bm25(s.tools)
	plain := measureWith(s.asked, func(q question) []string { return find(q.texts[0], 20) })
	fmt.Fprintf(w, "%-26s %5d %5d  %s  %s  %s  %s\n", name, len(s.tools), len(s.asked), bootstrap(f.any5), bootstrap(f.mrr),
		bootstrap(minus(f.any5, plain.any5)).signed(), bootstrap(minus(f.mrr, plain.mrr)).signed())
}

// shownWeak is how many tools search_tools shows if nothing fits well, and shownWell else.
const (
	shownWeak = 3
	shownWell = 8
)

// weak prints how often a search says that nothing fits well: of questions whose right
// answer is not shown therefore, and of the questions of another set, for most of which no
// tool was made.
func weak(w io.Writer, sets []set) {
	fmt.Fprintln(w, "\nnothing fits well: answers lost by it, and how often it is said of questions of another set")
	for i, s := range sets {
		c := catalog.New(catalog.Options{Sources: []tool.Source{source(s.tools)}})
		other := sets[(i+len(sets)/2)%len(sets)]
		var lost, told []float64
		for n, q := range slices.Concat(s.asked, other.asked) {
			r := c.SearchAll(context.Background(), catalog.Query{Text: q.texts[0], Limit: shownWell})
			place := slices.IndexFunc(names(r.Hits), func(name string) bool { return slices.Contains(q.want, name) })
			switch {
			case n >= len(s.asked):
				told = append(told, one(r.Weak))
			case place >= 0:
				lost = append(lost, one(r.Weak && place >= shownWeak))
			}
		}
		fmt.Fprintf(w, "%-26s %s, %s of %s\n", s.name, bootstrap(lost), bootstrap(told), other.name)
	}
	fmt.Fprintln(w)
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// costs prints the CPU time of searches among many tools, and of building the index.
func costs(w io.Writer, tools []tool.Info) error {
	for _, size := range []struct{ tools, namespaces int }{{100, 10}, {1000, 10}, {10_000, 1}, {10_000, 100}} {
		many := copies(tools, size.tools, size.namespaces)
		ms, err := cost(many)
		if err != nil {
			return err
		}
		took, memory := building(many)
		fmt.Fprintf(w, "%d tools in %d namespaces: %.2f ms of CPU time per search, index built in %d ms of CPU time, %.1f MB\n",
			size.tools, size.namespaces, ms, took.Milliseconds(), float64(memory)/(1<<20))
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
	size := max(heap(), empty) - empty
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

// set is questions about tools.
type set struct {
	name  string
	tools []tool.Info
	asked []question
}

// question is a query of a user, with the tools that answer it.
type question struct {
	texts []string // the question itself, then other wordings of it
	want  []string // names of tools, each of which is a right answer
}

// worded reports whether the questions have other wordings.
func (s *set) worded() bool {
	return !slices.ContainsFunc(s.asked, func(q question) bool { return len(q.texts) < 3 })
}

// figures are how well each question of a set was answered: whether a right answer is among
// the first one, five and ten, and the reciprocal of its place.
type figures struct {
	any1, any5, any10, mrr []float64
	missed                 []string // questions without a right answer among the first five
}

// measure asks the questions of a set, each in so many wordings.
func measure(s set, wordings int) figures {
	c := catalog.New(catalog.Options{Sources: []tool.Source{source(s.tools)}})
	return measureWith(s.asked, func(q question) []string { return names(ask(c, q, wordings)) })
}

// measureWith measures the answers of a search.
func measureWith(asked []question, answer func(question) []string) figures {
	var f figures
	for _, q := range asked {
		hits := answer(q)
		first := slices.IndexFunc(hits, func(name string) bool { return slices.Contains(q.want, name) })
		reciprocal := 0.0
		if first >= 0 {
			reciprocal = 1 / float64(first+1)
		}
		f.mrr = append(f.mrr, reciprocal)
		for most, to := range map[int]*[]float64{1: &f.any1, 5: &f.any5, 10: &f.any10} {
			found := 0.0
			if first >= 0 && first < most {
				found = 1
			}
			*to = append(*to, found)
		}
		if first < 0 || first >= 5 {
			f.missed = append(f.missed, fmt.Sprintf("  %s: %v at %d; got %v", q.texts[0], q.want, first+1, hits[:min(len(hits), 5)]))
		}
	}
	return f
}

func ask(c *catalog.Catalog, q question, wordings int) []catalog.Hit {
	hits, _ := c.Search(context.Background(), catalog.Query{Text: q.texts[0], Others: q.texts[1:min(wordings, len(q.texts))], Limit: 20})
	return hits
}

func names(hits []catalog.Hit) []string {
	all := make([]string, len(hits))
	for i, h := range hits {
		all[i] = h.Ref.String()
	}
	return all
}

// shownHits is how many tools a caller looks at.
const shownHits = 8

// simulation is callers who use what they find.
type simulation struct {
	set     set
	store   *usage.Store
	catalog *catalog.Catalog
}

func simulate(ctx context.Context, s set, database *db.DB) (*simulation, error) {
	store, err := usage.Open(ctx, database, usage.Options{Timeout: time.Minute})
	if err != nil {
		return nil, err
	}
	c := catalog.New(catalog.Options{
		Sources: []tool.Source{source(s.tools)}, Usage: store, Steps: append(catalog.DefaultSteps(), store.LearnCalls()),
	})
	return &simulation{s, store, c}, nil
}

// caller is how somebody uses the search.
type caller struct {
	first   int  // the wording in which a question is asked first; if no right tool is shown, the next one follows
	harmful bool // calls the first wrong tool
}

// use has a caller ask questions, and call the right tool when it is shown.
func (s *simulation) use(ctx context.Context, asked []question, by caller) error {
	for _, q := range asked {
		for _, text := range q.texts[by.first:] {
			found := s.catalog.SearchAll(ctx, catalog.Query{Text: text, Limit: shownHits})
			i := slices.IndexFunc(found.Hits, func(h catalog.Hit) bool { return slices.Contains(q.want, h.Ref.String()) != by.harmful })
			if i < 0 {
				continue
			}
			if _, err := s.catalog.Call(ctx, tool.Call{Ref: found.Hits[i].Ref, Args: exampleArgs(found.Hits[i].Input)}); err != nil {
				return err
			}
			break
		}
		s.store.Wait()
	}
	return nil
}

// figures measures the first wordings of some questions for a caller.
func (s *simulation) figures(ctx context.Context, asked []question) figures {
	return measureWith(asked, func(q question) []string {
		hits, _ := s.catalog.Search(ctx, catalog.Query{Text: q.texts[0], Limit: 20})
		return names(hits)
	})
}

// as is the context of a caller.
func as(id string) context.Context {
	return principal.With(context.Background(), principal.Principal{ID: id, Scopes: []principal.Scope{principal.MCP}})
}

// learning prints how the search gets better with use: half of the questions are asked
// first in other wordings only, then as they are, with other wordings if that fails. After
// each round all questions are measured as they are.
func learning(w io.Writer, s set) (err error) {
	folder, err := os.MkdirTemp("", "bench-search")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	database, err := db.Open(context.Background(), "sqlite:"+filepath.Join(folder, "usage.db"), db.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	sim, err := simulate(context.Background(), s, database)
	if err != nil {
		return err
	}
	defer sim.store.Close()
	used, others := halves(s.asked)
	user := as("key:user")
	before := sim.figures(user, used)
	for _, round := range []struct {
		name string
		by   caller
		of   []question
	}{{"before", caller{}, nil}, {"in other wordings", caller{first: 1}, used}, {"as they are", caller{}, used}} {
		if err := sim.use(user, round.of, round.by); err != nil {
			return err
		}
		after := sim.figures(user, used)
		print(w, set{tools: s.tools, asked: used}, round.name, after)
		fmt.Fprintf(w, "%-39s gained %s  %s\n", "", bootstrap(minus(after.any5, before.any5)).signed(), bootstrap(minus(after.mrr, before.mrr)).signed())
		print(w, set{tools: s.tools, asked: others}, "  questions never asked", sim.figures(user, others))
	}
	return nil
}

// halves are every other question.
func halves(asked []question) (even, odd []question) {
	for i, q := range asked {
		if i%2 == 0 {
			even = append(even, q)
		} else {
			odd = append(odd, q)
		}
	}
	return even, odd
}

// exampleArgs are arguments that a schema of the corpus accepts.
func exampleArgs(schema json.RawMessage) json.RawMessage {
	args := json.RawMessage("{}")
	required, _ := rawjson.Get(schema, "required")
	names, _ := rawjson.Items(required)
	for _, raw := range names {
		if name, ok := rawjson.Text(raw); ok {
			args = rawjson.SetText(args, name, "x")
		}
	}
	return args
}
