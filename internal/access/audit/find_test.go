package audit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

var (
	someNodes    = []string{"a", "b", `"c"`}
	somePeople   = []string{"web", "key:web", "who", `o"brien`, "é<&>", `back\slash`, ""}
	someTools    = []string{"git.status", "git.stash", "notes.add", "status", `odd"tool`, "git.über", "a*b", "name", "x\u2028y"}
	somePatterns = append([]string{"", "git.*", "*status", "*", "g*st*s", "*.*", "git*git", `*"tool`, "git.st", "Git.*", "git_status", "%", "*ü*", "x\u2028*"}, someTools...)
)

// picked is what Find promises, the slow way.
func picked(all []Entry, f Filter) (list []Entry) {
	for _, e := range all {
		at := e.At
		if (f.Since.IsZero() || !at.Before(f.Since)) && (f.Until.IsZero() || at.Before(f.Until)) &&
			(f.Who == "" || e.Who == f.Who || e.Name == f.Who) && (f.Decision == "" || e.Decision == f.Decision) &&
			(f.Tool == "" || matches(e.Subject, f.Tool)) && (f.Node == "" || e.Node == f.Node && e.Seq > f.After) {
			list = append(list, e)
		}
	}
	if f.Node == "" {
		slices.SortFunc(list, newerFirst)
	}
	return list[:min(len(list), f.Limit)]
}

// matches takes one letter after the other.
func matches(text, pattern string) bool {
	switch {
	case pattern == "":
		return text == ""
	case pattern[0] == '*':
		return matches(text, pattern[1:]) || text != "" && matches(text[1:], pattern)
	}
	return text != "" && text[0] == pattern[0] && matches(text[1:], pattern[1:])
}

// Whatever is asked for, and however entries lie in pages, the answer is as if each
// was looked at.
func TestFind(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, err := OpenStore(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
		one := func(of []string) string { return of[random.IntN(len(of))] }
		began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		for batch := range 40 {
			var deeds []Draft
			for range 1 + random.IntN(6) {
				at := began.Add(time.Duration(batch)*time.Second - time.Duration(random.IntN(3)*random.IntN(8))*time.Second)
				deeds = append(deeds, Draft{At: at, Who: one(somePeople), Name: one(somePeople), Action: Call, Subject: one(someTools), Decision: one([]string{"allow", "deny", ""})})
			}
			if err := s.add(t.Context(), one(someNodes), deeds, &binder{}); err != nil {
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
			f := Filter{Who: one(append(somePeople, "nobody", "")), Tool: one(somePatterns), Decision: one([]string{"", "", "deny"}), Limit: 1 + random.IntN(40)}
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

// A page holds so much and no more, and is text.
func TestPagesAreBounded(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	s, err := OpenStore(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	many, large := make([]Draft, 2*mostEntries+1), make([]Draft, 10)
	for i := range large {
		large[i].Subject = strings.Repeat("x", 100<<10)
	}
	for _, deeds := range [][]Draft{many, large} {
		if err := s.add(t.Context(), "a", deeds, &binder{}); err != nil {
			t.Fatal(err)
		}
	}
	var sizes []int64
	err = d.Read(t.Context(), func(tx *db.Tx) (err error) {
		sizes, err = db.All(t.Context(), tx, func(row db.Scanner) (n int64, err error) { return n, row.Scan(&n) },
			`SELECT last - first + 1 FROM audit_pages WHERE typeof(entries) = 'text' ORDER BY first`)
		return err
	})
	if want := []int64{mostEntries, mostEntries, 1, 3, 3, 3, 1}; err != nil || !slices.Equal(sizes, want) {
		t.Errorf("pages of %v entries (%v), want %v", sizes, err, want)
	}
	if found := told(t, s); found != "" {
		t.Error(found)
	}
}

// What is no text is kept as text, which any database takes, and its hash can be
// made again from an export.
func TestBrokenText(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, err := OpenStore(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		deeds := []Draft{{Subject: "a\xffb\x00c", Who: `\ufffd`}, {Subject: "fine"}}
		if err := s.add(t.Context(), "a", deeds, &binder{}); err != nil {
			t.Fatal(err)
		}
		list, err := s.Find(t.Context(), Filter{Node: "a", Tool: "a\xffb*"})
		if err != nil || len(list) != 1 || list[0].Subject != "a\ufffdb\x00c" || list[0].Who != `\ufffd` {
			t.Fatalf("%+v %v", list, err)
		}
		if got := Digest(list[0].appendUnsigned(nil)).String(); got != list[0].Hash {
			t.Errorf("hash %s, want %s", got, list[0].Hash)
		}
		if found := told(t, s); found != "" {
			t.Error(found)
		}
	})
}
