package audit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// bound keeps a chain in three pages, of entries 1 to 4, 5 to 8 and 9 to 12.
func bound(t *testing.T, d *db.DB, node string) *Store {
	t.Helper()
	s, err := OpenStore(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for n := range 3 {
		var deeds []Draft
		for i := 4*n + 1; i <= 4*n+4; i++ {
			deeds = append(deeds, Draft{At: began.Add(time.Duration(i) * time.Hour), Who: "key:web", Name: "web", Action: Call, Subject: fmt.Sprintf("git.tool_%d", i), Args: Digest(nil), Decision: "allow", Took: int64(i)})
		}
		if err := s.add(t.Context(), node, deeds, &binder{}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// execute does something behind the log's back.
func execute(t *testing.T, d *db.DB, query string, args ...any) {
	t.Helper()
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		_, err := tx.Exec(t.Context(), query, args...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// edited changes the lines of a page behind the log's back, and what the page says
// of itself so that it fits.
func edited(edit func(lines []string) []string) func(*testing.T, *db.DB) {
	return func(t *testing.T, d *db.DB) {
		var text string
		err := d.Read(t.Context(), func(tx *db.Tx) error {
			return tx.QueryRow(t.Context(), `SELECT entries FROM audit_pages WHERE node = 'a' AND first = 5`).Scan(&text)
		})
		if err != nil {
			t.Fatal(err)
		}
		lines := edit(strings.Split(strings.TrimSuffix(text, "\n"), "\n"))
		p := page{entries: strings.Join(lines, "\n") + "\n"}
		for line := range p.lines() {
			if l, ok := linkOf(line); ok {
				p.note(l.seq, l.at)
			}
		}
		execute(t, d, `UPDATE audit_pages SET first = $1, last = $2, since = $3, until = $4, entries = $5 WHERE node = 'a' AND first = 5`,
			p.first, p.last, p.since, p.until, p.entries)
	}
}

// statement is one that somebody else runs.
func statement(query string) func(*testing.T, *db.DB) {
	return func(t *testing.T, d *db.DB) { execute(t, d, query) }
}

// anew gives a line another subject and the hash that fits.
func anew(line string) string {
	e, err := decoded(strings.Replace(line, "git.tool", "git.innocent", 1))
	if err != nil {
		return err.Error()
	}
	unsigned := e.appendUnsigned(nil)
	e.Hash = Digest(unsigned).String()
	return strings.TrimSuffix(string(sign(unsigned, e.Hash)), "\n")
}

// What was done to the tables behind our back is found.
func TestTampering(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		do   func(*testing.T, *db.DB)
		want string
	}{
		"a word changed":      {edited(func(l []string) []string { l[1] = strings.Replace(l[1], "allow", "deny", 1); return l }), "a: entry 6 was changed"},
		"a number changed":    {edited(func(l []string) []string { l[1] = strings.Replace(l[1], `"took_us":6`, `"took_us":7`, 1); return l }), "a: entry 6 was changed"},
		"a member added":      {edited(func(l []string) []string { l[1] = strings.Replace(l[1], `,"prev"`, `,"rule":"x","prev"`, 1); return l }), "a: entry 6 was changed"},
		"chained anew":        {edited(func(l []string) []string { l[1] = anew(l[1]); return l }), "a: entry 7 does not follow entry 6"},
		"taken out":           {edited(func(l []string) []string { return slices.Delete(l, 1, 3) }), "a: entries 6 to 7 are missing"},
		"first of a page":     {edited(func(l []string) []string { return l[1:] }), "a: entries 5 to 5 are missing"},
		"last of a page":      {edited(func(l []string) []string { return l[:3] }), "a: entries 8 to 8 are missing"},
		"swapped":             {edited(func(l []string) []string { l[1], l[2] = l[2], l[1]; return l }), "a: entry 6 stands behind entry 7"},
		"written twice":       {edited(func(l []string) []string { return append(l, l[3]) }), "a: entry 8 stands behind entry 8"},
		"no entry":            {edited(func(l []string) []string { l[1] = "{}"; return l }), "a: entry 6 was changed: it cannot be read"},
		"of another node":     {edited(func(l []string) []string { l[1] = strings.Replace(l[1], `"a"`, `"b"`, 1); return l }), `a: entry 6 is one of node "b"`},
		"emptied":             {statement(`UPDATE audit_pages SET entries = '' WHERE first = 5`), "a: entries 5 to 8 are missing"},
		"a page taken out":    {statement(`DELETE FROM audit_pages WHERE first = 5`), "a: entries 5 to 8 are missing"},
		"the first page":      {statement(`DELETE FROM audit_pages WHERE first = 1`), "a: entries 1 to 4 are missing"},
		"the last page":       {statement(`DELETE FROM audit_pages WHERE first = 9`), "a: entries 9 to 12 are missing at the end"},
		"all pages":           {statement(`DELETE FROM audit_pages`), "a: entries 1 to 12 are missing at the end"},
		"a page moved":        {statement(`UPDATE audit_pages SET first = 13 WHERE first = 5`), "a: entry 5 stands behind entry 12"},
		"a page of another":   {statement(`UPDATE audit_pages SET node = 'b' WHERE first = 5`), "b: there are entries, and the end of the chain is not noted"},
		"first of the page":   {statement(`UPDATE audit_pages SET first = 6 WHERE first = 5`), "a: the page of entries 6 to 8 is not what it says"},
		"last of the page":    {statement(`UPDATE audit_pages SET last = 9 WHERE first = 5`), "a: the page of entries 5 to 9 is not what it says"},
		"beginning of a page": {statement(`UPDATE audit_pages SET since = since + 1 WHERE first = 5`), "a: the page of entries 5 to 8 is not what it says"},
		"end of a page":       {statement(`UPDATE audit_pages SET until = 0 WHERE first = 5`), "a: the page of entries 5 to 8 is not what it says"},
		"end of the chain":    {statement(`UPDATE audit_chains SET hash = 'x'`), "a: the chain does not end as was noted"},
		"a shorter chain":     {statement(`UPDATE audit_chains SET seq = 8, hash = (SELECT substr(entries, length(entries) - 66, 64) FROM audit_pages WHERE first = 5)`), "a: the chain does not end as was noted"},
		"cut by hand":         {statement(`UPDATE audit_chains SET cut = 4`), "a: entry 1 stands behind entry 4"},
		"cut off by hand":     {statement(`DELETE FROM audit_pages WHERE first = 1; UPDATE audit_chains SET cut = 4, cut_hash = 'x'`), "a: entry 5 does not follow entry 4"},
		"the chain taken out": {statement(`DELETE FROM audit_chains`), "a: there are entries, and the end of the chain is not noted"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := dbtest.Open(t, dbtest.SQLite(t))
			s := bound(t, d, "a")
			if found := told(t, s); found != "" {
				t.Fatal(found)
			}
			tt.do(t, d)
			if found := told(t, s); !strings.Contains(found, tt.want) {
				t.Errorf("found %q, want %q", found, tt.want)
			}
		})
	}
}

// told is what Verify finds, a line each.
func told(t *testing.T, s *Store) string {
	t.Helper()
	found, err := s.Verify(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, v := range found {
		for _, problem := range v.Problems {
			text += v.Node + ": " + problem + "\n"
		}
	}
	return text
}

// The last entry of a chain cannot be written anew either.
func TestTheEndIsNoted(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	s := bound(t, d, "a")
	execute(t, d, `DELETE FROM audit_pages WHERE first = 9`)
	execute(t, d, `UPDATE audit_chains SET seq = 8, hash = (SELECT substr(entries, length(entries) - 66, 64) FROM audit_pages WHERE first = 5)`)
	if found := told(t, s); found != "" {
		t.Fatal(found) // who may change both has cut the chain: only a head noted elsewhere tells
	}
	edited(func(l []string) []string { l[3] = anew(l[3]); return l })(t, d)
	if found := told(t, s); !strings.Contains(found, "a: the chain does not end as was noted") {
		t.Errorf("found %q", found)
	}
}

// A cut goes through the middle of a page: nothing old stays, and what stays is sound.
func TestCutWithinAPage(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := bound(t, d, "a")
		for _, tt := range []struct{ hour, gone int }{{0, 0}, {3, 2}, {7, 6}, {9, 8}, {13, 12}, {20, 12}} {
			before := time.Date(2026, 3, 1, 12+tt.hour, 0, 0, 0, time.UTC)
			if err := s.DeleteBefore(t.Context(), before); err != nil {
				t.Fatal(err)
			}
			found, err := s.Verify(t.Context())
			if err != nil || len(found) != 1 || len(found[0].Problems) > 0 || found[0].Cut != int64(tt.gone) || found[0].Entries != int64(12-tt.gone) {
				t.Errorf("before hour %d: %+v %v", tt.hour, found, err)
			}
			left, err := s.Find(t.Context(), Filter{Node: "a"})
			if err != nil || len(left) != 12-tt.gone || len(left) > 0 && left[0].Seq != int64(tt.gone+1) {
				t.Errorf("before hour %d there is left %+v, %v", tt.hour, left, err)
			}
		}
	})
}
