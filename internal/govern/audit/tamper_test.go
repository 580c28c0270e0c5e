package audit

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// twelve stores a chain of entries 1 to 12, one per hour.
func twelve(t *testing.T, d *db.DB, node string) *Store {
	t.Helper()
	s, err := OpenStore(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for n := range 3 {
		var entries []Entry
		for i := 4*n + 1; i <= 4*n+4; i++ {
			entries = append(entries, Entry{At: began.Add(time.Duration(i) * time.Hour), Who: "key:web", Name: "web", Action: Call, Subject: fmt.Sprintf("git.tool_%d", i), Args: Digest(nil), Decision: "allow", Took: int64(i)})
		}
		if err := s.add(t.Context(), node, entries); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// execute changes the tables behind the log's back.
func execute(t *testing.T, d *db.DB, query string, args ...any) {
	t.Helper()
	err := d.Exec(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
}

// edited changes the JSON of an entry, and its columns so that they fit.
func edited(seq int64, edit func(text string) string) func(*testing.T, *db.DB) {
	return func(t *testing.T, d *db.DB) {
		t.Helper()
		var text string
		err := d.QueryRow(t.Context(), `SELECT entry FROM audit_log WHERE node = 'a' AND seq = $1`, seq).Scan(&text)
		if err != nil {
			t.Fatal(err)
		}
		text = edit(text)
		r := row{seq: seq}
		if e, err := decode(text); err == nil {
			r = rowOf(&e, text)
		}
		execute(t, d, `UPDATE audit_log SET at = $1, who = $2, name = $3, subject = $4, decision = $5, entry = $6 WHERE node = 'a' AND seq = $7`,
			r.at, r.who, r.name, r.subject, r.decision, text, seq)
	}
}

func replaced(seq int64, old, with string) func(*testing.T, *db.DB) {
	return edited(seq, func(text string) string { return strings.Replace(text, old, with, 1) })
}

func statement(query string) func(*testing.T, *db.DB) {
	return func(t *testing.T, d *db.DB) { t.Helper(); execute(t, d, query) }
}

// resigned gives an entry another subject and the hash that fits.
func resigned(text string) string {
	e, err := decode(strings.Replace(text, "git.tool", "git.innocent", 1))
	if err != nil {
		return err.Error()
	}
	unsigned := e.unsigned()
	return sign(unsigned, Digest(unsigned))
}

// Verify finds what was done to the tables behind the log's back.
func TestTampering(t *testing.T) {
	t.Parallel()
	const lastHash = `UPDATE audit_chains SET seq = 8, hash = (SELECT substr(entry, length(entry) - 65, 64) FROM audit_log WHERE seq = 8)`
	tests := map[string]struct {
		do   func(*testing.T, *db.DB)
		want string
	}{
		"text changed":          {replaced(6, "allow", "deny"), "a: entry 6 was changed\n"},
		"number changed":        {replaced(6, `"took_us":6`, `"took_us":7`), "a: entry 6 was changed\n"},
		"member added":          {replaced(6, `,"prev"`, `,"rule":"x","prev"`), "a: entry 6 was changed\n"},
		"signed again":          {edited(6, resigned), "a: entry 7 does not follow entry 6"},
		"not an entry":          {edited(6, func(string) string { return "{}" }), "a: entry 6 was changed: it cannot be read"},
		"not JSON":              {edited(6, func(string) string { return "x" }), "a: entry 6 was changed: it cannot be read"},
		"empty":                 {edited(6, func(string) string { return "" }), "a: entry 6 was changed: it cannot be read"},
		"of another node":       {replaced(6, `"a"`, `"b"`), "a: entry 6 belongs to node b"},
		"swapped":               {statement(`UPDATE audit_log SET seq = 0 WHERE seq = 6; UPDATE audit_log SET seq = 6 WHERE seq = 7; UPDATE audit_log SET seq = 7 WHERE seq = 0`), "a: entry 6 comes after entry 7"},
		"copied":                {statement(`INSERT INTO audit_log SELECT node, 13, at, who, name, subject, decision, entry, org, session, own, detail FROM audit_log WHERE seq = 8`), "a: entry 8 comes after entry 12"},
		"deleted":               {statement(`DELETE FROM audit_log WHERE seq IN (6, 7)`), "a: entries 6 to 7 are missing"},
		"first deleted":         {statement(`DELETE FROM audit_log WHERE seq <= 4`), "a: entries 1 to 4 are missing"},
		"last deleted":          {statement(`DELETE FROM audit_log WHERE seq >= 9`), "a: entries 9 to 12 are missing at the end"},
		"all deleted":           {statement(`DELETE FROM audit_log`), "a: entries 1 to 12 are missing at the end"},
		"moved":                 {statement(`UPDATE audit_log SET seq = 13 WHERE seq = 5`), "a: entry 5 comes after entry 12"},
		"given to another node": {statement(`UPDATE audit_log SET node = 'b' WHERE seq = 5`), "b: there are entries, but the end of the chain is not stored"},
		"column at":             {statement(`UPDATE audit_log SET at = at + 1 WHERE seq = 5`), "a: entry 5 was changed: its columns differ from it"},
		"column who":            {statement(`UPDATE audit_log SET who = 'x' WHERE seq = 5`), "a: entry 5 was changed: its columns differ from it"},
		"column name":           {statement(`UPDATE audit_log SET name = 'x' WHERE seq = 5`), "a: entry 5 was changed: its columns differ from it"},
		"column subject":        {statement(`UPDATE audit_log SET subject = 'x' WHERE seq = 5`), "a: entry 5 was changed: its columns differ from it"},
		"column decision":       {statement(`UPDATE audit_log SET decision = 'x' WHERE seq = 5`), "a: entry 5 was changed: its columns differ from it"},
		"end of the chain":      {statement(`UPDATE audit_chains SET hash = 'x'`), "a: the last entry is not the stored end of the chain"},
		"shorter chain":         {statement(lastHash), "a: the last entry is not the stored end of the chain"},
		"cut by hand":           {statement(`UPDATE audit_chains SET cut = 4`), "a: entry 1 comes after entry 4"},
		"cut and deleted":       {statement(`DELETE FROM audit_log WHERE seq <= 4; UPDATE audit_chains SET cut = 4, cut_hash = 'x'`), "a: entry 5 does not follow entry 4"},
		"chain deleted":         {statement(`DELETE FROM audit_chains`), "a: there are entries, but the end of the chain is not stored"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := dbtest.Open(t, dbtest.SQLite(t))
			s := twelve(t, d, "a")
			if found := problemsIn(t, s); found != "" {
				t.Fatal(found)
			}
			tt.do(t, d)
			if found := problemsIn(t, s); !strings.Contains(found, tt.want) {
				t.Errorf("found %q, want %q", found, tt.want)
			}
		})
	}
}

// problemsIn is what Verify finds, one line each.
func problemsIn(t *testing.T, s *Store) string {
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

// The last entry of a chain cannot be signed again either.
func TestTheEndIsStored(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	s := twelve(t, d, "a")
	execute(t, d, `DELETE FROM audit_log WHERE seq > 8`)
	execute(t, d, `UPDATE audit_chains SET seq = 8, hash = (SELECT substr(entry, length(entry) - 65, 64) FROM audit_log WHERE seq = 8)`)
	if found := problemsIn(t, s); found != "" {
		t.Fatal(found) // an attacker who changes both tables shortens the chain: only a hash stored elsewhere shows it
	}
	edited(8, resigned)(t, d)
	if found := problemsIn(t, s); !strings.Contains(found, "a: the last entry is not the stored end of the chain") {
		t.Errorf("found %q", found)
	}
}

// DeleteOld deletes every old entry and no other, and the rest verifies.
func TestDeleteOldEachHour(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	s := twelve(t, d, "a")
	for _, tt := range []struct{ hour, deleted int }{{0, 0}, {3, 2}, {7, 6}, {9, 8}, {13, 12}, {20, 12}} {
		before := time.Date(2026, 3, 1, 12+tt.hour, 0, 0, 0, time.UTC)
		if _, err := s.DeleteOld(t.Context(), AgeLimits{Before: before}); err != nil {
			t.Fatal(err)
		}
		found, err := s.Verify(t.Context())
		if err != nil || len(found) != 1 || len(found[0].Problems) > 0 || found[0].Cut != int64(tt.deleted) || found[0].Entries != int64(12-tt.deleted) {
			t.Errorf("before hour %d: %+v %v", tt.hour, found, err)
		}
		left, err := s.Find(t.Context(), Filter{Node: "a"})
		if err != nil || len(left) != 12-tt.deleted || len(left) > 0 && left[0].Seq != int64(tt.deleted+1) {
			t.Errorf("before hour %d there is left %+v, %v", tt.hour, left, err)
		}
	}
}

// More entries than one transaction deletes are deleted by several.
func TestDeleteManyEntries(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	s, err := OpenStore(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	entries := make([]Entry, deletedAtOnce+20)
	for i := range entries {
		entries[i] = Entry{At: now.Add(time.Duration(i) * time.Second), Action: Call}
	}
	if err := s.add(t.Context(), "a", entries); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeleteOld(t.Context(), AgeLimits{Before: now.Add((deletedAtOnce + 10) * time.Second)}); err != nil {
		t.Fatal(err)
	}
	found, err := s.Verify(t.Context())
	if err != nil || len(found) != 1 || len(found[0].Problems) > 0 || found[0].Cut != deletedAtOnce+10 || found[0].Entries != 10 {
		t.Errorf("%+v %v", found, err)
	}
}

// Either database can query the JSON of entries, as docs/audit.md shows.
func TestEntriesInSQL(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		twelve(t, d, "a")
		query := `SELECT sum(entry ->> 'took_us') FROM audit_log`
		if d.Kind() == db.Postgres {
			query = `SELECT sum((entry::jsonb ->> 'took_us')::BIGINT) FROM audit_log`
		}
		var sum float64
		err := d.QueryRow(t.Context(), query).Scan(&sum)
		if err != nil || sum != 78 {
			t.Errorf("sum %v, %v", sum, err)
		}
	})
}
