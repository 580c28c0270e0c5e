// Package artifacttest tests the behaviour that every artifact.Store must have, whatever
// its database and content store.
package artifacttest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
)

// Run tests stores. Each call of open returns an empty one that publishes to the bus.
func Run(t *testing.T, open func(t *testing.T, bus *event.Bus) *artifact.Store) {
	tests := map[string]func(t *testing.T, s *artifact.Store, bus *event.Bus){
		"returns what was stored":              returnsStored,
		"stores the same content once":         storesOnce,
		"publishes what is created":            publishes,
		"resolves hashes":                      resolves,
		"refuses what it cannot store":         refuses,
		"finds by tag, creator and parent":     findsByField,
		"finds by words, best first":           findsByWords,
		"words and fields match together":      wordsAndFields,
		"survives hostile words":               hostileWords,
		"pages without gaps or duplicates":     pages,
		"pages ranked results":                 pagesRanked,
		"walks ancestors and children":         family,
		"never creates a cycle":                noCycle,
		"finds by annotations":                 annotations,
		"lists tags by use":                    listsTags,
		"deletes and restores":                 deletesAndRestores,
		"finds by type":                        findsByType,
		"stores the same content concurrently": manyWriters,
		"shows artifacts to their owners":      ownersAndStrangers,
		"keeps the same content of two apart":  sameContentOfTwo,
		"shows what is nobody's to everybody":  nobodysIsEverybodys,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bus := event.New(event.BusOptions{})
			test(t, open(t, bus), bus)
		})
	}
}

// put stores text and fails the test on an error.
func put(t *testing.T, s *artifact.Store, text string, d artifact.Details) artifact.Artifact {
	t.Helper()
	a, _, err := s.Put(t.Context(), strings.NewReader(text), d)
	if err != nil {
		t.Fatalf("Put %q: %v", text, err)
	}
	return a
}

// names searches and returns the names found, in order.
func names(t *testing.T, s *artifact.Store, q artifact.Query) string {
	t.Helper()
	page, err := s.Search(t.Context(), q)
	if err != nil {
		t.Fatalf("Search %+v: %v", q, err)
	}
	var found []string
	for _, a := range page.Artifacts {
		found = append(found, a.Name)
	}
	return strings.Join(found, " ")
}

func expect(t *testing.T, s *artifact.Store, q artifact.Query, want string) {
	t.Helper()
	if got := names(t, s, q); got != want {
		t.Errorf("Search %+v = %q, want %q", q, got, want)
	}
}

func returnsStored(t *testing.T, s *artifact.Store, _ *event.Bus) {
	first := put(t, s, "first", artifact.Details{})
	a := put(t, s, "content", artifact.Details{
		MIME: "text/x-lua", Tags: []string{"b", " a ", "b", ""}, Creator: "ada", Parent: first.Hash, Name: "thing", Description: "does things",
	})
	got, err := s.Get(t.Context(), a.Hash)
	if err != nil {
		t.Fatal(err)
	}
	if got.Hash != cas.Sum([]byte("content")) || got.Size != 7 || got.MIME != "text/x-lua" || !slices.Equal(got.Tags, []string{"a", "b"}) ||
		got.Creator != "ada" || got.Parent != first.Hash || got.Name != "thing" || got.Description != "does things" || got.CreatedAt.IsZero() {
		t.Errorf("Get = %+v", got)
	}
	if first.MIME != "application/octet-stream" {
		t.Errorf("the default MIME type is %s", first.MIME)
	}
	content, err := s.Read(t.Context(), a.Hash, 100)
	if err != nil || string(content) != "content" {
		t.Errorf("Read = %q, %v", content, err)
	}
}

func storesOnce(t *testing.T, s *artifact.Store, _ *event.Bus) {
	parent := put(t, s, "parent", artifact.Details{})
	first, created, err := s.Put(t.Context(), strings.NewReader("x"), artifact.Details{Tags: []string{"one"}, Creator: "ada", Name: "old"})
	if err != nil || !created {
		t.Fatalf("Put = %v, %v", created, err)
	}
	again, created, err := s.Put(t.Context(), strings.NewReader("x"), artifact.Details{Tags: []string{"two"}, Creator: "bob", Name: "new", Parent: parent.Hash})
	if err != nil || created {
		t.Fatalf("Put again = %v, %v", created, err)
	}
	if !slices.Equal(again.Tags, []string{"one", "two"}) || again.Creator != "ada" || again.Name != "new" ||
		again.Parent != parent.Hash || !again.CreatedAt.Equal(first.CreatedAt) {
		t.Errorf("stored twice: %+v", again)
	}
	expect(t, s, artifact.Query{Vibe: "new"}, "new")
	expect(t, s, artifact.Query{Vibe: "old"}, "")
	if page, _ := s.Search(t.Context(), artifact.Query{}); page.Total != 2 {
		t.Errorf("%d artifacts", page.Total)
	}
}

func publishes(t *testing.T, s *artifact.Store, bus *event.Bus) {
	sub := bus.Subscribe(event.Options{Types: []string{"artifact.*"}})
	defer sub.Close()
	for range 2 {
		put(t, s, "x", artifact.Details{Name: "thing", Tags: []string{"a"}})
	}
	put(t, s, "y", artifact.Details{})
	var seen []string
	for range 2 {
		e, err := sub.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, e.Data.(artifact.Created).Hash.Short())
	}
	if want := []string{cas.Sum([]byte("x")).Short(), cas.Sum([]byte("y")).Short()}; !slices.Equal(seen, want) {
		t.Errorf("published %v, want %v", seen, want)
	}
}

func resolves(t *testing.T, s *artifact.Store, _ *event.Bus) {
	a := put(t, s, "x", artifact.Details{})
	for _, text := range []string{a.Hash.String(), a.Hash.URI(), a.Hash.Short(), "cas:" + a.Hash.Short(), strings.ToUpper(a.Hash.Short())} {
		if ref, err := s.Resolve(t.Context(), text); err != nil || ref != a.Hash {
			t.Errorf("Resolve %s = %s, %v", text, ref, err)
		}
	}
	for text, code := range map[string]fault.Code{
		"000000000000": fault.NotFound, "abc": fault.InvalidParams, "not a hash": fault.InvalidParams, cas.Sum([]byte("y")).String(): fault.NotFound,
	} {
		if _, err := s.Resolve(t.Context(), text); fault.CodeOf(err) != code || fault.HintOf(err) == "" {
			t.Errorf("Resolve %s: %v", text, err)
		}
	}
}

func refuses(t *testing.T, s *artifact.Store, _ *event.Bus) {
	many := make([]string, 65)
	for i := range many {
		many[i] = fmt.Sprint("tag", i)
	}
	for name, d := range map[string]artifact.Details{
		"long tag":       {Tags: []string{strings.Repeat("x", 200)}},
		"many tags":      {Tags: many},
		"long name":      {Name: strings.Repeat("x", 300)},
		"unknown parent": {Parent: cas.Sum([]byte("unknown"))},
	} {
		if _, _, err := s.Put(t.Context(), strings.NewReader(name), d); err == nil || fault.HintOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Search(t.Context(), artifact.Query{Cursor: "nonsense"}); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("cursor: %v", err)
	}
	if _, err := s.Get(t.Context(), cas.Sum([]byte("unknown"))); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("Get: %v", err)
	}
}

func manyWriters(t *testing.T, s *artifact.Store, bus *event.Bus) {
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			if _, _, err := s.Put(t.Context(), strings.NewReader("x"), artifact.Details{Tags: []string{fmt.Sprint("t", i)}}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	a, err := s.Get(t.Context(), cas.Sum([]byte("x")))
	if err != nil || len(a.Tags) != 8 {
		t.Errorf("Get = %+v, %v", a, err)
	}
	if bus.Last() != 1 {
		t.Errorf("%d events", bus.Last())
	}
}
