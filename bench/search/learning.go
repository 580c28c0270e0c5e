package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/usage"
)

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
	return measureWith(asked, func(q question) []catalog.Hit {
		hits, _ := s.catalog.Search(ctx, catalog.Query{Text: q.texts[0], Limit: 20})
		return hits
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
	for _, round := range []struct {
		name string
		by   caller
		of   []question
	}{{"before", caller{}, nil}, {"in other wordings", caller{first: 1}, used}, {"as they are", caller{}, used}} {
		if err := sim.use(user, round.of, round.by); err != nil {
			return err
		}
		print(w, set{tools: s.tools, asked: used}, round.name, sim.figures(user, used))
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
