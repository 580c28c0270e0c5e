package db_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// museum has tables of every type we use. The order of their names differs from that of
// their references.
var museum = fstest.MapFS{
	"migrations/00001_museum.sql": {Data: []byte(`-- +goose Up
CREATE TABLE rooms (name TEXT PRIMARY KEY);
CREATE TABLE pieces (
	id     BIGINT PRIMARY KEY,
	room   TEXT NOT NULL REFERENCES rooms (name),
	"order" BIGINT,
	weight DOUBLE PRECISION,
	lent   BOOLEAN,
	label  TEXT,
	image  BYTEA
);
CREATE TABLE empty (x BIGINT);
CREATE TABLE heap (x BIGINT, word TEXT);`)},
	"migrations/00002_later.sql": {Data: []byte(`-- +goose Up
ALTER TABLE rooms ADD COLUMN floor BIGINT NOT NULL DEFAULT 3;`)},
}

// kinds are the kinds of databases; tests go from each to each.
var kinds = map[string]func(testing.TB) string{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres}

func fromEachToEach(t *testing.T, test func(t *testing.T, from, to string)) {
	for from, makeFrom := range kinds {
		for to, makeTo := range kinds {
			t.Run(from+" to "+to, func(t *testing.T) {
				t.Parallel()
				test(t, makeFrom(t), makeTo(t))
			})
		}
	}
}

type content map[string][][]any

func contentOf(t *testing.T, address string) (versions map[string]int64, tables []db.Table, all content) {
	t.Helper()
	all = content{}
	err := db.ReadDump(t.Context(), address, func(d *db.Dump) error {
		versions, tables = d.Versions, d.Tables
		for _, table := range d.Tables {
			err := d.Rows(t.Context(), table, func(row []any) error {
				all[table.Name] = append(all[table.Name], slices.Clone(row))
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return versions, tables, all
}

func fillFrom(ctx context.Context, to string, tables []db.Table, all content, more func(*db.Filling) error) error {
	return db.FillEmpty(ctx, to, func(f *db.Filling) error {
		if err := f.MigrateTo(ctx, "museum", museum, 1); err != nil {
			return err
		}
		for _, table := range tables {
			rows := all[table.Name]
			for _, portion := range [][][]any{rows[:len(rows)/2], rows[len(rows)/2:]} {
				err := f.Load(ctx, table, func() ([]any, error) {
					if len(portion) == 0 {
						return nil, nil
					}
					row := slices.Clone(portion[0])
					portion = portion[1:]
					return row, nil
				})
				if err != nil {
					return err
				}
			}
		}
		return more(f)
	})
}

// A dump of a database of any kind fills one of any kind with the same content.
func TestADumpFillsAnyDatabase(t *testing.T) {
	t.Parallel()
	fromEachToEach(t, func(t *testing.T, from, to string) {
		seed := rand.Uint64()
		fillMuseum(t, from, rand.New(rand.NewPCG(seed, 0)))
		versions, tables, want := contentOf(t, from)
		if !reflect.DeepEqual(versions, map[string]int64{"museum": 1}) {
			t.Errorf("versions %v", versions)
		}
		if room, piece := index(tables, "rooms"), index(tables, "pieces"); len(tables) != 4 || room > piece {
			t.Errorf("tables %v", tables)
		}
		err := fillFrom(t.Context(), to, tables, want, func(f *db.Filling) error { return f.Finish(t.Context()) })
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		_, _, got := contentOf(t, to)
		for _, table := range tables {
			if row := differing(table.Name, got[table.Name], want[table.Name]); row >= 0 {
				t.Errorf("seed %d: %s has %d rows, want %d, and row %d is not the same: %.200q, want %.200q", seed, table.Name, len(got[table.Name]), len(want[table.Name]), row, fmt.Sprintf("%#v", got[table.Name][row]), fmt.Sprintf("%#v", want[table.Name][row]))
			}
		}
		// The tables have the dump's version; the next start of the program migrates them.
		d := dbtest.Open(t, to)
		if err := d.Migrate(t.Context(), "museum", museum); err != nil {
			t.Fatal(err)
		}
		if err := d.Check(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// differing returns the index of the first row that differs, or -1. A table without a key
// has no order.
func differing(table string, got, want [][]any) int {
	if table == "heap" {
		order := func(a, b []any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
		slices.SortFunc(got, order)
		slices.SortFunc(want, order)
	}
	for i := range max(len(got), len(want)) {
		if i >= min(len(got), len(want)) || !reflect.DeepEqual(got[i], want[i]) {
			return i
		}
	}
	return -1
}

func index(tables []db.Table, name string) int {
	return slices.IndexFunc(tables, func(t db.Table) bool { return t.Name == name })
}

func fillMuseum(t *testing.T, address string, r *rand.Rand) {
	t.Helper()
	d, err := db.Open(t.Context(), address, db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	first := fstest.MapFS{"migrations/00001_museum.sql": museum["migrations/00001_museum.sql"]}
	err = errors.Join(d.Migrate(t.Context(), "museum", first), d.Write(t.Context(), func(tx *db.Tx) error {
		for i := range 20 {
			if _, err := tx.Exec(t.Context(), "INSERT INTO rooms (name) VALUES ($1)", fmt.Sprintf("%d %s", i, words(r, 3))); err != nil {
				return err
			}
			if _, err := tx.Exec(t.Context(), "INSERT INTO heap (x, word) VALUES ($1, $2)", r.Int64(), words(r, 9)); err != nil {
				return err
			}
		}
		for i := range 200 {
			_, err := tx.Exec(t.Context(), `INSERT INTO pieces (id, room, "order", weight, lent, label, image)
				SELECT $1, min(name), $2, $3, $4, $5, $6 FROM rooms WHERE name LIKE $7`, int64(i)-100, maybe(r, anInt(r)), maybe(r, aFloat(r)), maybe(r, r.IntN(2) == 0),
				maybe(r, words(r, r.IntN(40))), maybe(r, randomBytes(r)), fmt.Sprintf("%d %%", r.IntN(20)))
			if err != nil {
				return err
			}
		}
		return nil
	}), d.Close())
	if err != nil {
		t.Fatal(err)
	}
}

func maybe(r *rand.Rand, value any) any {
	if r.IntN(5) == 0 {
		return nil
	}
	return value
}

func anInt(r *rand.Rand) int64 {
	return []int64{0, -1, 1, math.MaxInt64, math.MinInt64, r.Int64(), -r.Int64()}[r.IntN(7)]
}

func aFloat(r *rand.Rand) float64 {
	return []float64{0.1, 1, -3, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Inf(1), r.NormFloat64(), 1e15}[r.IntN(8)]
}

func randomBytes(r *rand.Rand) []byte {
	b := make([]byte, []int{0, 1, 7, 5000}[r.IntN(4)])
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func words(r *rand.Rand, n int) string {
	var out strings.Builder
	for range n {
		out.WriteRune([]rune("ab \t\n\"'\\,\x01é漢🎵0\u202e")[r.IntN(15)])
	}
	return out.String()
}

// A dump shows one moment, even if others write meanwhile.
func TestADumpIsOfOneMoment(t *testing.T) {
	t.Parallel()
	for kind, fresh := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			address := fresh(t)
			d := dbtest.Open(t, address)
			if err := d.Migrate(t.Context(), "museum", museum); err != nil {
				t.Fatal(err)
			}
			add := func(name string) error { // to both tables, in one transaction
				return d.Write(t.Context(), func(tx *db.Tx) error {
					if _, err := tx.Exec(t.Context(), "INSERT INTO heap (word) VALUES ($1)", name); err != nil {
						return err
					}
					_, err := tx.Exec(t.Context(), "INSERT INTO rooms (name) VALUES ($1)", name)
					return err
				})
			}
			if err := add("before"); err != nil {
				t.Fatal(err)
			}
			counts := map[string]int{}
			var failed error
			err := db.ReadDump(t.Context(), address, func(dump *db.Dump) error {
				for i, table := range dump.Tables {
					failed = errors.Join(failed, add(fmt.Sprint("meanwhile ", i)))
					if err := dump.Rows(t.Context(), table, func([]any) error { counts[table.Name]++; return nil }); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil || failed != nil || counts["heap"] != 1 || counts["rooms"] != 1 {
				t.Errorf("%v %v: %v", err, failed, counts)
			}
		})
	}
}

// A database whose filling failed is empty again.
func TestFailedFillLeavesNothing(t *testing.T) {
	t.Parallel()
	from, to := dbtest.SQLite(t), dbtest.Postgres(t)
	fillMuseum(t, from, rand.New(rand.NewPCG(1, 1)))
	_, tables, all := contentOf(t, from)
	no := errors.New("no")
	for name, c := range map[string]struct {
		want error
		end  func(*db.Filling) error
	}{
		"refused":      {no, func(*db.Filling) error { return no }},
		"refused late": {no, func(f *db.Filling) error { return errors.Join(f.Finish(t.Context()), no) }},
		"a row that refers to none": {db.ErrForeignKey, func(f *db.Filling) error {
			rows := [][]any{{int64(7777), "no such room"}}
			return f.Load(t.Context(), db.Table{Name: "pieces", Columns: []string{"id", "room"}}, func() (row []any, _ error) {
				if len(rows) > 0 {
					row, rows = rows[0], nil
				}
				return row, nil
			})
		}},
	} {
		err := fillFrom(t.Context(), to, tables, all, c.end)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err := db.ReadDump(t.Context(), to, func(*db.Dump) error { return nil }); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("%s left something: %v", name, err)
		}
	}
	ended, cancel := context.WithCancelCause(t.Context())
	err := fillFrom(ended, to, tables, all, func(f *db.Filling) error { cancel(no); return f.Finish(ended) })
	if err == nil {
		t.Error("a cancelled filling succeeded")
	}
	if err := fillFrom(t.Context(), to, tables, all, func(f *db.Filling) error { return f.Finish(t.Context()) }); err != nil {
		t.Errorf("after the failures: %v", err)
	}
	err = fillFrom(t.Context(), to, tables, all, func(f *db.Filling) error { return nil })
	if !errors.Is(err, db.ErrNotEmpty) || fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a second filling: %v", err)
	}
	if _, _, got := contentOf(t, to); len(got["pieces"]) != 200 {
		t.Errorf("the second filling removed %d pieces", 200-len(got["pieces"]))
	}
}

// A database that is being filled, or whose filling was interrupted, cannot be opened;
// the next filling starts over.
func TestInterruptedFill(t *testing.T) {
	t.Parallel()
	to := dbtest.Postgres(t)
	refuses := func() {
		t.Helper()
		if d, err := db.Open(t.Context(), to, db.Options{}); fault.CodeOf(err) != fault.Conflict || !strings.Contains(fault.HintOf(err), "restore") {
			t.Errorf("Open = %v, %v", d, err)
		}
		if err := db.ReadDump(t.Context(), to, func(*db.Dump) error { return nil }); fault.CodeOf(err) != fault.Conflict {
			t.Errorf("ReadDump = %v", err)
		}
	}
	begun, die := make(chan struct{}), make(chan struct{})
	var first sync.WaitGroup
	first.Go(func() { // it ends without cleaning up
		defer func() { _ = recover() }()
		_ = fillFrom(t.Context(), to, nil, nil, func(*db.Filling) error { close(begun); <-die; panic("killed") })
	})
	<-begun
	refuses()
	err := fillFrom(t.Context(), to, nil, nil, func(*db.Filling) error { return nil })
	if fault.CodeOf(err) != fault.Conflict || errors.Is(err, db.ErrNotEmpty) {
		t.Errorf("a second one at the same time: %v", err)
	}
	close(die)
	first.Wait()
	refuses()
	if err := fillFrom(t.Context(), to, nil, nil, func(f *db.Filling) error { return f.Finish(t.Context()) }); err != nil {
		t.Fatalf("starting over: %v", err)
	}
	dbtest.Open(t, to)
}

func TestLoadErrors(t *testing.T) {
	t.Parallel()
	for kind, fresh := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for _, table := range []db.Table{{Name: "nothing", Columns: []string{"x"}}, {Name: "rooms", Columns: []string{"name", "windows"}}} {
				err := fillFrom(t.Context(), fresh(t), []db.Table{table}, nil, func(*db.Filling) error { return nil })
				if !errors.Is(err, db.ErrUnknownColumn) {
					t.Errorf("%v: %v", table, err)
				}
			}
			damaged := errors.New("damaged")
			err := db.FillEmpty(t.Context(), fresh(t), func(f *db.Filling) error {
				if err := f.MigrateTo(t.Context(), "museum", museum, 1); err != nil {
					return err
				}
				return f.Load(t.Context(), db.Table{Name: "rooms", Columns: []string{"name"}}, func() ([]any, error) { return nil, damaged })
			})
			if !errors.Is(err, damaged) {
				t.Errorf("rows that cannot be read: %v", err)
			}
		})
	}
}
