package audit

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

var (
	someNodes    = []string{"a", "b", `"c"`}
	someOrgs     = []string{"acme", `o"rg`, ""}
	somePeople   = []string{"web", "key:web", "who", `o"brien`, "é<&>", `back\slash`, ""}
	someTools    = []string{"git.status", "git.stash", "notes.add", "status", `odd"tool`, "git.über", "a*b", "name", "x\u2028y"}
	somePatterns = append([]string{"", "git.*", "*status", "*", "g*st*s", "*.*", "git*git", `*"tool`, "git.st", "Git.*", "git_status", "git.s?a*", "[g]it*", `*\\*`, "%", "%*", "g_*", "*ü*", "x\u2028*"}, someTools...)
)

// picked selects what Find must return by looking at every entry.
func picked(all []Entry, f Filter) (list []Entry) {
	for _, e := range all {
		at := e.At
		if (f.Since.IsZero() || !at.Before(f.Since)) && (f.Until.IsZero() || at.Before(f.Until)) &&
			(f.Org == "" || e.Org == f.Org) && (f.Who == "" || e.Who == f.Who || e.Name == f.Who) && (f.Decision == "" || e.Decision == f.Decision) &&
			(f.Tool == "" || matches(e.Subject, f.Tool)) && (f.Node == "" || e.Node == f.Node && e.Seq > f.After) {
			list = append(list, e)
		}
	}
	if f.Node == "" {
		slices.SortFunc(list, func(a, b Entry) int {
			return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.Node, a.Node), cmp.Compare(b.Seq, a.Seq))
		})
	}
	return list[:min(len(list), f.Limit)]
}

// matches compares one byte after the other.
func matches(text, pattern string) bool {
	switch {
	case pattern == "":
		return text == ""
	case pattern[0] == '*':
		return matches(text, pattern[1:]) || text != "" && matches(text[1:], pattern)
	}
	return text != "" && text[0] == pattern[0] && matches(text[1:], pattern[1:])
}

// Find returns the same entries as a search that looks at each of them.
func TestFind(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, err := OpenStore(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(1, 2))
		one := func(of []string) string { return of[random.IntN(len(of))] }
		began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		for batch := range 40 {
			var entries []Entry
			for range 1 + random.IntN(6) {
				at := began.Add(time.Duration(batch)*time.Second - time.Duration(random.IntN(3)*random.IntN(8))*time.Second)
				entries = append(entries, Entry{At: at, Org: one(someOrgs), Who: one(somePeople), Name: one(somePeople), Action: Call, Subject: one(someTools), Decision: one([]string{"allow", "deny", ""})})
			}
			if err := s.add(t.Context(), one(someNodes), entries); err != nil {
				t.Fatal(err)
			}
		}
		var all []Entry
		for _, node := range someNodes {
			entries, err := s.Find(t.Context(), Filter{Node: node, Limit: 1000})
			if err != nil {
				t.Fatal(err)
			}
			for i, e := range entries {
				if e.Node != node || e.Seq != int64(i+1) {
					t.Fatalf("%d of %s is %+v", i, node, e)
				}
			}
			all = append(all, entries...)
		}
		for range 150 {
			f := Filter{Org: one(append(someOrgs, "", "")), Who: one(append(somePeople, "nobody", "")), Tool: one(somePatterns), Decision: one([]string{"", "", "deny"}), Limit: 1 + random.IntN(40)}
			if random.IntN(3) == 0 {
				f.Node, f.After = one(someNodes), int64(random.IntN(40))
			}
			if random.IntN(3) == 0 {
				f.Since = began.Add(time.Duration(random.IntN(60)) * time.Second)
			}
			if random.IntN(3) == 0 {
				f.Until = began.Add(time.Duration(random.IntN(60)) * time.Second)
			}
			got, err := s.Find(t.Context(), f)
			if want := picked(all, f); err != nil || !slices.Equal(got, want) {
				t.Fatalf("%+v: %v\ngot  %s\nwant %s", f, err, shown(got), shown(want))
			}
		}
	})
}

func shown(list []Entry) string {
	var text strings.Builder
	for _, e := range list {
		fmt.Fprintf(&text, "%s %d %s %s; ", e.Node, e.Seq, e.At.Format("05"), e.Subject)
	}
	return text.String()
}

// Invalid text is replaced by text that both databases store, and the hash can be
// computed again from an export.
func TestBrokenText(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, err := OpenStore(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		entries := []Entry{{Subject: "a\xffb\x00c", Who: `\ufffd`}, {Subject: "fine"}}
		if err := s.add(t.Context(), "a", entries); err != nil {
			t.Fatal(err)
		}
		list, err := s.Find(t.Context(), Filter{Node: "a", Tool: "a\xffb*"})
		if err != nil || len(list) != 1 || list[0].Subject != "a\ufffdb\x00c" || list[0].Who != `\ufffd` {
			t.Fatalf("%+v %v", list, err)
		}
		if got := Digest(list[0].unsigned()); got != list[0].Hash {
			t.Errorf("hash %s, want %s", got, list[0].Hash)
		}
		if found := problemsIn(t, s); found != "" {
			t.Error(found)
		}
	})
}

// TestFindShowsOwnEntries checks who sees which entries.
func TestFindShowsOwnEntries(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	s, err := OpenStore(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	entries := []Entry{{Who: "person:ada", Org: "acme"}, {Who: "person:bob", Org: "acme"}, {Who: "person:ada", Org: "other"}, {Who: "key:web"}}
	for i := range entries {
		entries[i].At, entries[i].Action, entries[i].Subject = time.UnixMicro(int64(i+1)), Call, fmt.Sprint(i)
	}
	if err := s.add(t.Context(), "a", entries); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		who  principal.Principal
		want string // subjects, the newest first
	}{
		"ada in acme":         {principal.Principal{ID: "person:ada", Org: "acme", Scopes: []principal.Scope{principal.Read}}, "0"},
		"ada in other":        {principal.Principal{ID: "person:ada", Org: "other"}, "2"},
		"ada in no org":       {principal.Principal{ID: "person:ada"}, "20"},
		"a key":               {principal.Principal{ID: "key:web", Scopes: []principal.Scope{principal.Read}}, "3"},
		"another key":         {principal.Principal{ID: "key:cron", Scopes: []principal.Scope{principal.Read}}, ""},
		"the org":             {principal.Principal{ID: "key:acme", Org: "acme", Scopes: []principal.Scope{principal.Org}}, "10"},
		"an admin of the org": {principal.Principal{ID: "key:other", Org: "other", Scopes: []principal.Scope{principal.Admin}}, "2"},
		"observe":             {principal.Principal{ID: "key:eye", Scopes: []principal.Scope{principal.Observe}}, "3210"},
		"a chat":              {principal.Principal{ID: "key:web", Person: "acme/ada", Scopes: []principal.Scope{principal.Admin}}, ""},
		"the owner":           {principal.Local(), "3210"},
	} {
		list, err := s.Find(principal.With(t.Context(), tt.who), Filter{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, e := range list {
			got += e.Subject
		}
		if got != tt.want {
			t.Errorf("%s sees %q, want %q", name, got, tt.want)
		}
	}
}
