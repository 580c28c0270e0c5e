package audit

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// createOld creates the tables of the releases that stored rows or pages, and fills
// them by insert: node a has so many entries, node b those after its cut at 3.
func createOld(t *testing.T, d *db.DB, a int, insert func(*testing.T, *db.DB, []Entry)) (all []Entry) {
	t.Helper()
	old := fstest.MapFS{}
	for _, name := range []string{"migrations/00001_audit.sql", "migrations/00002_pages.sql"} {
		text, err := fs.ReadFile(Migrations, name)
		if err != nil {
			t.Fatal(err)
		}
		old[name] = &fstest.MapFile{Data: text}
	}
	if err := d.Migrate(t.Context(), "audit", old); err != nil {
		t.Fatal(err)
	}
	began := time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)
	for node, count := range map[string]int{"a": a, "b": 8} {
		chain := Chain{Node: node}
		var entries []Entry
		for i := range count {
			e := Entry{
				Node: node, Seq: int64(i + 1), At: began.Add(time.Duration(i) * time.Millisecond), Who: "key:web", Name: `o"brien`, Trace: "trace", Request: "request",
				Action: Call, Subject: fmt.Sprintf("git.tool_%d", i), Args: Digest(nil).String(), Decision: "allow", Size: 3, Error: "<&>", Took: int64(i), Prev: chain.Hash,
			}
			e.Hash = Digest(e.appendUnsigned(nil)).String()
			if chain.Seq, chain.Hash = e.Seq, e.Hash; node == "b" && e.Seq == 3 {
				chain.Cut, chain.CutHash = e.Seq, e.Hash
			}
			if chain.Cut == 0 && node == "b" || e.Seq == chain.Cut {
				continue
			}
			entries = append(entries, e)
		}
		execute(t, d, `INSERT INTO audit_chains (node, seq, hash, cut, cut_hash) VALUES ($1, $2, $3, $4, $5)`, node, chain.Seq, chain.Hash, chain.Cut, chain.CutHash)
		for some := range slices.Chunk(entries, 200) {
			insert(t, d, some)
		}
		all = append(all, entries...)
	}
	slices.SortStableFunc(all, func(a, b Entry) int { return strings.Compare(a.Node, b.Node) })
	return all
}

// insertEntries stores entries as the first releases did, one row each.
func insertEntries(t *testing.T, d *db.DB, entries []Entry) {
	t.Helper()
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		for _, e := range entries {
			_, err := tx.Exec(t.Context(), `INSERT INTO audit_entries (node, seq, at, who, name, client, trace, request, action, subject, args, decision, rule, size, error, took, prev, hash)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`,
				e.Node, e.Seq, e.At.UnixMicro(), e.Who, e.Name, e.Client, e.Trace, e.Request, e.Action, e.Subject, e.Args, e.Decision, e.Rule, e.Size, e.Error, e.Took, e.Prev, e.Hash)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// insertPage stores entries of a node as later releases did, as one page.
func insertPage(t *testing.T, d *db.DB, entries []Entry) {
	t.Helper()
	var text strings.Builder
	for _, e := range entries {
		text.WriteString(sign(e.appendUnsigned(nil), e.Hash) + "\n")
	}
	first, last := entries[0], entries[len(entries)-1]
	execute(t, d, `INSERT INTO audit_pages (node, first, last, since, until, entries) VALUES ($1, $2, $3, $4, $5, $6)`,
		first.Node, first.Seq, last.Seq, first.At.UnixMicro(), last.At.UnixMicro(), text.String())
}

var oldFormats = map[string]func(*testing.T, *db.DB, []Entry){"rows": insertEntries, "pages": insertPage}

// All entries of older releases are moved, and their chains verify and continue, even
// if a node was killed while it moved them and several nodes do it at once.
func TestMoveOld(t *testing.T) {
	t.Parallel()
	for kind, fresh := range map[string]func(testing.TB) string{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		for format, insert := range oldFormats {
			t.Run(kind+"/"+format, func(t *testing.T) {
				t.Parallel()
				url := fresh(t)
				d := dbtest.Open(t, url)
				want := createOld(t, d, entriesAtOnce+300, insert)
				if err := d.Migrate(t.Context(), "audit", Migrations); err != nil {
					t.Fatal(err)
				}
				if moved, err := (&Store{d}).moveSome(t.Context()); err != nil || moved == 0 || moved >= len(want) { // and then the node is killed
					t.Fatalf("moved %d, %v", moved, err)
				}
				var nodes sync.WaitGroup
				for _, store := range []*db.DB{d, dbtest.Open(t, url), dbtest.Open(t, url)} {
					nodes.Go(func() {
						if _, err := OpenStore(context.WithoutCancel(t.Context()), store); err != nil {
							t.Error(err)
						}
					})
				}
				nodes.Wait()
				s, err := OpenStore(t.Context(), d)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := s.add(t.Context(), "a", []Draft{{Subject: "new"}}); err != nil {
					t.Fatal(err)
				}
				if found := problemsIn(t, s); found != "" {
					t.Error(found)
				}
				var got []Entry
				for _, node := range []string{"a", "b"} {
					list, err := s.Find(t.Context(), Filter{Node: node, Limit: len(want) + 1})
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, list...)
				}
				got = slices.DeleteFunc(got, func(e Entry) bool { return e.Subject == "new" })
				if !slices.Equal(got, want) {
					t.Errorf("%d entries, want the %d there were", len(got), len(want))
				}
			})
		}
	}
}

// Entries that were changed or deleted before they were moved are reported after it;
// entries that an older node adds later are not.
func TestMoveOldHidesNothing(t *testing.T) {
	t.Parallel()
	tamper := map[string]func(*testing.T, *db.DB){
		"rows": func(t *testing.T, d *db.DB) {
			execute(t, d, `UPDATE audit_entries SET subject = 'git.innocent' WHERE node = 'a' AND seq = 4`)
			execute(t, d, `DELETE FROM audit_entries WHERE node = 'a' AND seq = 7`)
		},
		"pages": func(t *testing.T, d *db.DB) {
			execute(t, d, `UPDATE audit_pages SET entries = replace(entries, '"subject":"git.tool_3"', '"subject":"git.innocent"') WHERE node = 'a'`)
			execute(t, d, `UPDATE audit_pages SET entries = substr(entries, 1, instr(entries, '{"node":"a","seq":7') - 1) || substr(entries, instr(entries, '{"node":"a","seq":8')) WHERE node = 'a'`)
		},
	}
	for format, insert := range oldFormats {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			d := dbtest.Open(t, dbtest.SQLite(t))
			createOld(t, d, 10, insert)
			tamper[format](t, d)
			s, err := OpenStore(t.Context(), d)
			if err != nil {
				t.Fatal(err)
			}
			const want = "a: entry 4 was changed\na: entries 7 to 7 are missing\n"
			if found := problemsIn(t, s); found != want {
				t.Errorf("found %q, want %q", found, want)
			}
			list, err := s.Find(t.Context(), Filter{Node: "a", After: 9})
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			next := Entry{Node: "a", Seq: 11, At: list[0].At, Subject: "later", Prev: list[0].Hash}
			next.Hash = Digest(next.appendUnsigned(nil)).String()
			insert(t, d, []Entry{next})
			execute(t, d, `UPDATE audit_chains SET seq = 11, hash = $1 WHERE node = 'a'`, next.Hash)
			if found := problemsIn(t, s); found != want {
				t.Errorf("found %q, want %q", found, want)
			}
		})
	}
}

// A line of a page that is no entry any more is moved too, and reported.
func TestMoveOldKeepsUnreadableLines(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	createOld(t, d, 10, insertPage)
	execute(t, d, `UPDATE audit_pages SET entries = replace(entries, '{"node":"a","seq":5,', 'x{"seq":5,') WHERE node = 'a'`)
	s, err := OpenStore(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	if found := problemsIn(t, s); !strings.Contains(found, "a: entry 5 was changed: it cannot be read") || strings.Contains(found, "missing") {
		t.Errorf("found %q", found)
	}
}

// An entry that exists in the old and in the new table was put there by hand.
func TestMoveOldRefusesWhatExists(t *testing.T) {
	t.Parallel()
	for format, insert := range oldFormats {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			d := dbtest.Open(t, dbtest.SQLite(t))
			old := createOld(t, d, 10, insert)
			if _, err := OpenStore(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			insert(t, d, old[:1])
			if _, err := OpenStore(t.Context(), d); err == nil || !strings.Contains(err.Error(), "exists already") {
				t.Errorf("opened: %v", err)
			}
		})
	}
}
