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

// furnishOld makes the tables as they were, with a row for each entry, and fills
// them: node a has so many entries, node b those past its cut at 3.
func furnishOld(t *testing.T, d *db.DB, a int) (all []Entry) {
	t.Helper()
	const first = "migrations/00001_audit.sql"
	text, err := fs.ReadFile(migrations, first)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Migrate(t.Context(), "audit", fstest.MapFS{first: {Data: text}}); err != nil {
		t.Fatal(err)
	}
	began := time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)
	for node, count := range map[string]int{"a": a, "b": 8} {
		chain := Chain{Node: node}
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
			all = append(all, e)
		}
		execute(t, d, `INSERT INTO audit_chains (node, seq, hash, cut, cut_hash) VALUES ($1, $2, $3, $4, $5)`, node, chain.Seq, chain.Hash, chain.Cut, chain.CutHash)
	}
	for some := range slices.Chunk(all, 500) {
		insertOld(t, d, some)
	}
	return all
}

// insertOld adds rows as the program before this one did.
func insertOld(t *testing.T, d *db.DB, entries []Entry) {
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

// What older programs kept is all there, in sound chains that go on, though one node
// was killed while it moved it, and several do so at once.
func TestAdopt(t *testing.T) {
	t.Parallel()
	for kind, fresh := range map[string]func(testing.TB) string{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			url := fresh(t)
			d := dbtest.Open(t, url)
			want := furnishOld(t, d, atATime+300)
			if err := d.Migrate(t.Context(), "audit", migrations); err != nil {
				t.Fatal(err)
			}
			if moved, err := (&Store{d}).adoptSome(t.Context()); err != nil || moved != atATime { // and then it is killed
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
			if err := s.add(t.Context(), "a", []Draft{{Subject: "new"}}, &binder{}); err != nil {
				t.Fatal(err)
			}
			if found := told(t, s); found != "" {
				t.Error(found)
			}
			var got []Entry
			for _, node := range []string{"a", "b"} {
				list, err := s.Find(t.Context(), Filter{Node: node, Limit: len(want)})
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, list...)
			}
			slices.SortStableFunc(want, func(a, b Entry) int { return strings.Compare(a.Node, b.Node) })
			got = slices.DeleteFunc(got, func(e Entry) bool { return e.Subject == "new" })
			if !slices.Equal(got, want) {
				t.Errorf("%d entries, want the %d there were", len(got), len(want))
			}
		})
	}
}

// What was changed or taken out before it was moved is told afterwards; what an older
// node adds meanwhile is no tampering.
func TestAdoptHidesNothing(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	furnishOld(t, d, 10)
	execute(t, d, `UPDATE audit_entries SET subject = 'git.innocent' WHERE node = 'a' AND seq = 4`)
	execute(t, d, `DELETE FROM audit_entries WHERE node = 'a' AND seq = 7`)
	s, err := OpenStore(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	const want = "a: entry 4 was changed\na: entries 7 to 7 are missing\n"
	if found := told(t, s); found != want {
		t.Errorf("found %q, want %q", found, want)
	}
	list, err := s.Find(t.Context(), Filter{Node: "a", After: 9})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	next := Entry{Node: "a", Seq: 11, At: list[0].At, Subject: "later", Prev: list[0].Hash}
	next.Hash = Digest(next.appendUnsigned(nil)).String()
	insertOld(t, d, []Entry{next})
	execute(t, d, `UPDATE audit_chains SET seq = 11, hash = $1 WHERE node = 'a'`, next.Hash)
	if found := told(t, s); found != want {
		t.Errorf("found %q, want %q", found, want)
	}
}

// An entry that is in both tables was put there by hand.
func TestAdoptRefusesWhatIsThereTwice(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	old := furnishOld(t, d, 10)
	if _, err := OpenStore(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	insertOld(t, d, old[:1])
	if _, err := OpenStore(t.Context(), d); err == nil || !strings.Contains(err.Error(), "move audit entries into pages") {
		t.Errorf("opened: %v", err)
	}
}
