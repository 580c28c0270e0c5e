package artifact_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
)

// runSuite tests the behaviour that every store must have, whatever its database and
// content store. Each call of open returns an empty one that publishes to the bus.
func runSuite(t *testing.T, open func(t *testing.T, bus *event.Bus) *artifact.Store) {
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
		"lists once what is nobody's and mine": nobodysAndMine,
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

func findsByField(t *testing.T, s *artifact.Store, _ *event.Bus) {
	a := put(t, s, "1", artifact.Details{Name: "a", Tags: []string{"type:lua", "x"}, Creator: "ada"})
	put(t, s, "2", artifact.Details{Name: "b", Tags: []string{"type:lua"}, Creator: "bob", Parent: a.Hash})
	put(t, s, "3", artifact.Details{Name: "c", Tags: []string{"type:midi"}, Creator: "ada", Parent: a.Hash})
	expect(t, s, artifact.Query{Tags: []string{"x", "type:lua"}}, "a")
	expect(t, s, artifact.Query{Tags: []string{"x", "type:midi"}}, "")
	for want, q := range map[string]artifact.Query{
		"c b a": {},
		"b a":   {Tags: []string{"type:lua"}},
		"c a":   {Creator: "ada"},
		"c b":   {Parent: a.Hash},
		"a":     {Tags: []string{"type:lua"}, Creator: "ada"},
		"c":     {Creator: "ada", Parent: a.Hash},
		"b":     {Name: "b"},
		"":      {Tags: []string{"type"}},
	} {
		expect(t, s, q, want)
	}
	expect(t, s, artifact.Query{Tags: []string{"type:lua"}, Without: "x"}, "b")
	expect(t, s, artifact.Query{Without: "x"}, "c b")
	expect(t, s, artifact.Query{Without: "x", Vibe: "lua"}, "b")
	put(t, s, "1", artifact.Details{Untag: "x"})
	expect(t, s, artifact.Query{Tags: []string{"type:lua"}, Without: "x"}, "b a")
}

func findsByWords(t *testing.T, s *artifact.Store, _ *event.Bus) {
	put(t, s, "1", artifact.Details{Name: "noise", Description: "plays an ambient drone, dreamy and slow"})
	put(t, s, "2", artifact.Details{Name: "ambient_pad", Description: "a pad"})
	put(t, s, "3", artifact.Details{Name: "drums", Tags: []string{"mood:ambient"}})
	put(t, s, "4", artifact.Details{Name: "polka", Description: "loud"})
	put(t, s, "5", artifact.Details{Name: "école", Description: "Très français"})
	for _, c := range []struct{ vibe, want string }{
		{"ambient", "ambient_pad drums noise"},
		{"ambient pad", "ambient_pad drums noise"},
		{"dreamy ambient", "noise ambient_pad drums"},
		{"AMBI", "ambient_pad drums noise"},
		{"mood ambient", "drums ambient_pad noise"},
		{"French", ""},
		{"français", "école"},
		{"", "école polka drums ambient_pad noise"},
	} {
		expect(t, s, artifact.Query{Vibe: c.vibe}, c.want)
	}
}

func wordsAndFields(t *testing.T, s *artifact.Store, _ *event.Bus) {
	a := put(t, s, "1", artifact.Details{Name: "one", Description: "loud", Tags: []string{"type:lua"}, Creator: "ada"})
	put(t, s, "2", artifact.Details{Name: "two", Description: "loud", Tags: []string{"type: lua"}, Creator: "bob", Parent: a.Hash})
	put(t, s, "3", artifact.Details{Name: "three", Description: "quiet", Tags: []string{"type:lua"}, Creator: "bob"})
	for want, q := range map[string]artifact.Query{
		"one":     {Vibe: "loud", Tags: []string{"type:lua"}},
		"two":     {Vibe: "loud", Creator: "bob"},
		"two one": {Vibe: "loud"},
		"":        {Vibe: "loud", Name: "three"},
	} {
		expect(t, s, q, want)
	}
	expect(t, s, artifact.Query{Vibe: "loud", Parent: a.Hash}, "two")
}

func hostileWords(t *testing.T, s *artifact.Store, _ *event.Bus) {
	put(t, s, "1", artifact.Details{Name: "near", Description: "and or not near", Creator: `o"brien (x) : *`, Tags: []string{`a"b`, "{x} : y*", "é:ü"}})
	for _, vibe := range []string{`"`, `near(a b)`, "AND", "a OR", "NOT", "*", "name:", "{name} : x", "^a", "a\x00b", strings.Repeat("word ", 500), "日本語", "'; DROP TABLE artifacts; --"} {
		if _, err := s.Search(t.Context(), artifact.Query{Vibe: vibe}); err != nil {
			t.Errorf("vibe %.40q: %v", vibe, err)
		}
	}
	expect(t, s, artifact.Query{Vibe: "AND NOT", Creator: `o"brien (x) : *`}, "near")
	for _, tag := range []string{`a"b`, "{x} : y*", "é:ü"} {
		expect(t, s, artifact.Query{Vibe: "near", Tags: []string{tag}}, "near")
	}
}

// collect walks all pages of a query.
func collect(t *testing.T, s *artifact.Store, q artifact.Query) (found []string, pages int) {
	t.Helper()
	for {
		page, err := s.Search(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		pages++
		for _, a := range page.Artifacts {
			found = append(found, a.Name)
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return found, pages
		}
	}
}

func pages(t *testing.T, s *artifact.Store, _ *event.Bus) {
	var want []string
	for i := range 25 {
		name := fmt.Sprintf("n%02d", i)
		put(t, s, name, artifact.Details{Name: name, Tags: []string{"all", fmt.Sprint("mod", i%2)}})
		want = append([]string{name}, want...)
	}
	for _, q := range []artifact.Query{{Limit: 10}, {Limit: 5, Tags: []string{"all"}}} {
		if found, n := collect(t, s, q); !slices.Equal(found, want) || n != (25+q.Limit-1)/q.Limit {
			t.Errorf("%+v: %v on %d pages", q, found, n)
		}
	}
	page, err := s.Search(t.Context(), artifact.Query{Tags: []string{"mod1"}, Limit: 3})
	if err != nil || page.Total != 12 || len(page.Artifacts) != 3 {
		t.Errorf("Search = %d of %d, %v", len(page.Artifacts), page.Total, err)
	}
}

func pagesRanked(t *testing.T, s *artifact.Store, _ *event.Bus) {
	for i := range 20 {
		put(t, s, fmt.Sprint(i), artifact.Details{Name: fmt.Sprintf("n%02d", i), Description: "loud"})
	}
	put(t, s, "best", artifact.Details{Name: "loud"})
	page, err := s.Search(t.Context(), artifact.Query{Vibe: "loud", Limit: 8})
	if err != nil || page.Artifacts[0].Name != "loud" || page.Total != 21 {
		t.Fatalf("Search = %+v, %v", page, err)
	}
	put(t, s, "later", artifact.Details{Name: "n99", Description: "loud"}) // between two pages
	rest, _ := collect(t, s, artifact.Query{Vibe: "loud", Limit: 8, Cursor: page.Next})
	if len(rest) != 13 || slices.Contains(rest, "n99") || rest[12] != "n00" {
		t.Errorf("the rest is %v", rest)
	}
}

func family(t *testing.T, s *artifact.Store, _ *event.Bus) {
	var parent cas.Ref
	for i := range 4 {
		parent = put(t, s, fmt.Sprint(i), artifact.Details{Name: "song", Parent: parent}).Hash
	}
	put(t, s, "cousin", artifact.Details{Name: "cousin", Parent: cas.Sum([]byte("1"))})
	line, err := s.Ancestors(t.Context(), parent, 10)
	if err != nil || len(line) != 3 || line[0].Hash != cas.Sum([]byte("2")) || line[2].Hash != cas.Sum([]byte("0")) {
		t.Errorf("Ancestors = %v, %v", line, err)
	}
	if line, _ := s.Ancestors(t.Context(), parent, 2); len(line) != 2 {
		t.Errorf("two ancestors are %v", line)
	}
	children, err := s.Children(t.Context(), cas.Sum([]byte("1")), 10)
	if err != nil || len(children) != 2 || children[0].Name != "cousin" {
		t.Errorf("Children = %v, %v", children, err)
	}
	versions, err := s.Versions(t.Context(), "song", 10)
	if err != nil || len(versions) != 4 || versions[0].Hash != parent {
		t.Errorf("Versions = %v, %v", versions, err)
	}
}

func noCycle(t *testing.T, s *artifact.Store, _ *event.Bus) {
	a := put(t, s, "a", artifact.Details{})
	b := put(t, s, "b", artifact.Details{Parent: a.Hash})
	for _, parent := range []cas.Ref{a.Hash, b.Hash} {
		_, _, err := s.Put(t.Context(), strings.NewReader("a"), artifact.Details{Parent: parent})
		if fault.CodeOf(err) != fault.Conflict {
			t.Errorf("an artifact with the parent %s: %v", parent.Short(), err)
		}
	}
}

func annotations(t *testing.T, s *artifact.Store, _ *event.Bus) {
	a := put(t, s, "a", artifact.Details{Name: "pad"})
	put(t, s, "b", artifact.Details{Name: "other"})
	for _, n := range []artifact.Annotation{{Message: "lovely in the bridge", Vibe: "wistful", Source: "ada"}, {Message: "too long"}} {
		if _, err := s.Annotate(t.Context(), a.Hash, n); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Get(t.Context(), a.Hash)
	if err != nil || len(got.Annotations) != 2 || got.Annotations[0].Vibe != "wistful" || got.Annotations[0].Source != "ada" || got.Annotations[1].Time.IsZero() {
		t.Errorf("Get = %+v, %v", got, err)
	}
	expect(t, s, artifact.Query{Vibe: "wistful bridge"}, "pad")
	expect(t, s, artifact.Query{Vibe: "wistful", Creator: "nobody"}, "")
	if _, err := s.Annotate(t.Context(), cas.Sum([]byte("zzz")), artifact.Annotation{Message: "x"}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("Annotate of an unknown artifact: %v", err)
	}
}

func listsTags(t *testing.T, s *artifact.Store, _ *event.Bus) {
	put(t, s, "a", artifact.Details{Tags: []string{"type:lua", "style:jazz"}})
	put(t, s, "b", artifact.Details{Tags: []string{"type:lua", "style:folk"}})
	if tags, err := s.Tags(t.Context(), "", 10); err != nil || !slices.Equal(tags, []string{"type:lua", "style:folk", "style:jazz"}) {
		t.Errorf("Tags = %v, %v", tags, err)
	}
	if tags, _ := s.Tags(t.Context(), "style:j", 10); !slices.Equal(tags, []string{"style:jazz"}) {
		t.Errorf("Tags of style:j = %v", tags)
	}
}

// deletesAndRestores checks that a deleted artifact is not found, that its descendants stay,
// and that it is restored as it was.
func deletesAndRestores(t *testing.T, s *artifact.Store, _ *event.Bus) {
	parent := put(t, s, "one", artifact.Details{Name: "one", Tags: []string{"a"}, Creator: "ann", Description: "the first"})
	child := put(t, s, "two", artifact.Details{Name: "two", Parent: parent.Hash})
	before, err := s.Annotate(t.Context(), parent.Hash, artifact.Annotation{Message: "fine"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Delete(t.Context(), parent.Hash); err != nil {
		t.Fatal(err)
	}
	expect(t, s, artifact.Query{}, "two")
	expect(t, s, artifact.Query{Vibe: "first"}, "")
	if _, err := s.Get(t.Context(), parent.Hash); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a deleted artifact: %v", err)
	}
	if _, err := s.Delete(t.Context(), parent.Hash); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("deleted twice: %v", err)
	}
	if line, err := s.Ancestors(t.Context(), child.Hash, 9); err != nil || len(line) != 0 {
		t.Errorf("ancestors: %v, %v", line, err)
	}
	put(t, s, "three", artifact.Details{Name: "three", Parent: child.Hash})
	if content, err := s.Read(t.Context(), parent.Hash, 9); err != nil || string(content) != "one" {
		t.Errorf("its content: %q, %v", content, err)
	}
	after, err := s.Restore(t.Context(), parent.Hash)
	if err != nil {
		t.Fatal(err)
	}
	if after.Name != "one" || after.Creator != "ann" || len(after.Tags) != 1 || len(after.Annotations) != 1 || !after.CreatedAt.Equal(before.CreatedAt) {
		t.Errorf("restored %+v, was %+v", after, before)
	}
	expect(t, s, artifact.Query{Vibe: "first"}, "one")
	if _, err := s.Restore(t.Context(), parent.Hash); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("restored twice: %v", err)
	}
	if _, err := s.Delete(t.Context(), parent.Hash); err != nil {
		t.Fatal(err)
	}
	put(t, s, "one", artifact.Details{Name: "again"})
	expect(t, s, artifact.Query{Name: "again"}, "again")
}

// findsByType checks the filter of types, alone and with words.
func findsByType(t *testing.T, s *artifact.Store, _ *event.Bus) {
	for name, mime := range map[string]string{"song": "audio/wav", "tune": "audio/midi", "note": "text/plain"} {
		put(t, s, name, artifact.Details{Name: name, MIME: mime, Description: "something"})
	}
	expect(t, s, artifact.Query{MIME: []string{"!audio/midi", "audio/%"}}, "song")
	expect(t, s, artifact.Query{MIME: []string{"audio/midi"}, Vibe: "something"}, "tune")
	expect(t, s, artifact.Query{MIME: []string{"!audio/%"}}, "note")
}

// Callers of the tests. All but the last are of the organisation acme.
var (
	ada    = principal.Principal{ID: "person:ada/acme", Org: "acme", Scopes: []principal.Scope{principal.MCP}}
	bob    = principal.Principal{ID: "person:bob/acme", Org: "acme", Scopes: []principal.Scope{principal.MCP}}
	boss   = principal.Principal{ID: "key:boss", Org: "acme", Scopes: []principal.Scope{principal.MCP, principal.Org}}
	chat   = principal.Principal{ID: "key:web", Person: "acme/ada", Scopes: []principal.Scope{principal.Admin}}
	rival  = principal.Principal{ID: "key:rival", Org: "other", Scopes: []principal.Scope{principal.MCP, principal.Org, principal.Admin}}
	nobody = principal.Principal{ID: "key:plain", Scopes: []principal.Scope{principal.MCP}}
	root   = principal.Principal{ID: "key:root", Scopes: []principal.Scope{principal.Admin}}
)

func as(t *testing.T, who principal.Principal) context.Context {
	return principal.With(t.Context(), who)
}

// ownersAndStrangers checks that every way to reach an artifact or a content shows those of
// others to nobody but whom principal.Sees names, with the same error as for unknown ones.
func ownersAndStrangers(t *testing.T, s *artifact.Store, _ *event.Bus) {
	secret := putAs(t, s, ada, "secret of ada", artifact.Details{Name: "plan", Tags: []string{"mood:secret"}, Description: "zebra"})
	child := putAs(t, s, ada, "child", artifact.Details{Name: "child", Parent: secret.Hash})
	content, err := s.StoreContent(as(t, ada), strings.NewReader("content of ada"), "text/plain")
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []principal.Principal{ada, boss, root} {
		ctx := as(t, who)
		if a, err := s.Get(ctx, secret.Hash); err != nil || a.Owner != ada.Owner() {
			t.Errorf("%s gets %+v, %v", who.ID, a, err)
		}
		if page, err := s.Search(ctx, artifact.Query{Vibe: "zebra"}); err != nil || page.Total != 1 {
			t.Errorf("%s finds %+v, %v", who.ID, page, err)
		}
		if c, err := s.Find(ctx, content.Hash.Short()); err != nil || c.MIME != "text/plain" || c.Size != 14 {
			t.Errorf("%s: content %+v, %v", who.ID, c, err)
		}
		if line, err := s.Ancestors(ctx, child.Hash, 5); err != nil || len(line) != 1 {
			t.Errorf("%s: ancestors %v, %v", who.ID, line, err)
		}
	}
	for _, who := range []principal.Principal{bob, chat, rival, nobody} {
		seesNothing(t, s, who, secret.Hash, content.Hash)
	}
	if items, _, err := s.Stats(as(t, ada)); err != nil || items != 3 {
		t.Errorf("ada has %d contents, %v", items, err)
	}
}

func putAs(t *testing.T, s *artifact.Store, who principal.Principal, text string, d artifact.Details) artifact.Artifact {
	t.Helper()
	a, _, err := s.Put(as(t, who), strings.NewReader(text), d)
	if err != nil {
		t.Fatalf("%s puts %q: %v", who.ID, text, err)
	}
	return a
}

// seesNothing tries everything with the hashes of an artifact and of a content.
func seesNothing(t *testing.T, s *artifact.Store, who principal.Principal, secret, content cas.Ref) {
	t.Helper()
	ctx, unknown := as(t, who), cas.Sum([]byte("unknown"))
	for name, try := range map[string]func(cas.Ref) error{
		"Get":       func(ref cas.Ref) error { _, err := s.Get(ctx, ref); return err },
		"Resolve":   func(ref cas.Ref) error { _, err := s.Resolve(ctx, ref.String()); return err },
		"Find":      func(ref cas.Ref) error { _, err := s.Find(ctx, ref.String()); return err },
		"Find id":   func(ref cas.Ref) error { _, err := s.Find(ctx, artifact.ID(ref)); return err },
		"Annotate":  func(ref cas.Ref) error { _, err := s.Annotate(ctx, ref, artifact.Annotation{Message: "x"}); return err },
		"Delete":    func(ref cas.Ref) error { _, err := s.Delete(ctx, ref); return err },
		"Restore":   func(ref cas.Ref) error { _, err := s.Restore(ctx, ref); return err },
		"Ancestors": func(ref cas.Ref) error { _, err := s.Ancestors(ctx, ref, 5); return err },
		"parent": func(ref cas.Ref) error {
			_, _, err := s.Put(ctx, strings.NewReader("mine of "+who.ID), artifact.Details{Parent: ref})
			return err
		},
	} {
		want := try(unknown)
		for _, ref := range []cas.Ref{secret, content} {
			got := try(ref)
			if fault.CodeOf(got) != fault.NotFound || strings.ReplaceAll(got.Error(), ref.String(), unknown.String()) != want.Error() &&
				strings.ReplaceAll(got.Error(), ref.Short(), unknown.Short()) != want.Error() {
				t.Errorf("%s, %s: %v; an unknown one: %v", who.ID, name, got, want)
			}
		}
	}
	for _, q := range []artifact.Query{{}, {Name: "plan"}, {Vibe: "zebra"}, {Tags: []string{"mood:secret"}}, {Parent: secret}, {Vibe: "zebra", Tags: []string{"mood:secret"}}} {
		if page, err := s.Search(ctx, q); err != nil || page.Total != 0 || len(page.Artifacts) != 0 {
			t.Errorf("%s finds %+v by %+v, %v", who.ID, page, q, err)
		}
	}
	if tags, err := s.Tags(ctx, "mood:", 9); err != nil || len(tags) != 0 {
		t.Errorf("%s: tags %v, %v", who.ID, tags, err)
	}
	if items, bytes, err := s.Stats(ctx); err != nil || items != 0 || bytes != 0 {
		t.Errorf("%s: %d contents of %d bytes, %v", who.ID, items, bytes, err)
	}
}

// sameContentOfTwo checks that the same content of two owners is two artifacts with metadata
// of their own, and that neither learns of the other.
func sameContentOfTwo(t *testing.T, s *artifact.Store, _ *event.Bus) {
	putAs(t, s, ada, "same", artifact.Details{MIME: "text/plain", Name: "hers", Tags: []string{"a"}})
	his, created, err := s.Put(as(t, rival), strings.NewReader("same"), artifact.Details{MIME: "text/x-lua", Name: "his"})
	if err != nil || !created || his.Name != "his" || len(his.Tags) != 0 || his.Owner != rival.Owner() {
		t.Fatalf("the second one has %+v, %v, %v", his, created, err)
	}
	for who, want := range map[string]string{ada.ID: "hers", rival.ID: "his"} {
		ctx := as(t, map[string]principal.Principal{ada.ID: ada, rival.ID: rival}[who])
		if a, err := s.Get(ctx, his.Hash); err != nil || a.Name != want {
			t.Errorf("%s gets %+v, %v", who, a, err)
		}
		if page, err := s.Search(ctx, artifact.Query{}); err != nil || page.Total != 1 || page.Artifacts[0].Name != want {
			t.Errorf("%s finds %+v, %v", who, page, err)
		}
	}
	if page, err := s.Search(as(t, root), artifact.Query{}); err != nil || page.Total != 2 {
		t.Errorf("root finds %+v, %v", page, err)
	}
	for _, text := range []string{"cas", "cas"} {
		if _, err := s.StoreContent(as(t, ada), strings.NewReader(text), "text/plain"); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := s.StoreContent(as(t, rival), strings.NewReader("cas"), "audio/midi"); err != nil || c.MIME != "audio/midi" {
		t.Errorf("the second owner's content is %+v, %v", c, err)
	}
	if _, err := s.Delete(as(t, ada), his.Hash); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(as(t, rival), his.Hash); err != nil {
		t.Errorf("after the other was deleted: %v", err)
	}
	if _, err := s.Find(as(t, ada), his.Hash.String()); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("ada, after she deleted hers: %v", err)
	}
	if back, err := s.Restore(as(t, ada), his.Hash); err != nil || back.Name != "hers" || back.Owner != ada.Owner() {
		t.Errorf("restored %+v, %v", back, err)
	}
	if _, err := s.Find(as(t, ada), his.Hash.String()); err != nil {
		t.Errorf("ada, after she restored hers: %v", err)
	}
}

// nobodysIsEverybodys checks that what the program stores is shown to all, who may not
// delete it, and that it stays so when somebody else stores the same.
func nobodysIsEverybodys(t *testing.T, s *artifact.Store, _ *event.Bus) {
	a := put(t, s, "of the program", artifact.Details{Name: "program"})
	putAs(t, s, ada, "of the program", artifact.Details{Name: "hers"})
	if _, err := s.StoreContent(as(t, ada), strings.NewReader("first hers"), ""); err != nil {
		t.Fatal(err)
	}
	later, err := s.StoreContent(t.Context(), strings.NewReader("first hers"), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []principal.Principal{bob, chat, rival, nobody} {
		ctx := as(t, who)
		if got, err := s.Get(ctx, a.Hash); err != nil || got.Name != "program" {
			t.Errorf("%s gets %+v, %v", who.ID, got, err)
		}
		for _, ref := range []cas.Ref{a.Hash, later.Hash} {
			if _, err := s.Find(ctx, ref.String()); err != nil {
				t.Errorf("%s: %v", who.ID, err)
			}
		}
		if _, err := s.Annotate(ctx, a.Hash, artifact.Annotation{Message: "fine"}); err != nil {
			t.Errorf("%s annotates: %v", who.ID, err)
		}
	}
	if _, err := s.Delete(as(t, bob), a.Hash); fault.CodeOf(err) != fault.Denied {
		t.Errorf("bob deletes: %v", err)
	}
	if gone, err := s.Delete(as(t, root), a.Hash); err != nil || gone.Name != "program" {
		t.Errorf("root deletes %+v, %v", gone, err)
	}
}
