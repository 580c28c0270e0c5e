package artifacttest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/store/artifact"
)

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
