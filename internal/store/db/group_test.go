package db

import (
	"context"
	"database/sql/driver"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"modernc.org/sqlite"
)

// writing is what a writer of a crowd does in addition to inserting its name.
type writing struct {
	ctx    context.Context // nil means the test's
	before func()          // called when it has its turn; may be nil
	more   string          // SQL that follows the insert
}

// crowd queues the named writers in order while the first holds the turn, and returns
// their errors and the rows stored in the end.
func crowd(t *testing.T, special map[string]writing, names ...string) (errs map[string]error, rows []string) {
	t.Helper()
	ctx := t.Context()
	d, err := Open(ctx, "sqlite:"+filepath.Join(t.TempDir(), "x.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	if err := d.Write(ctx, func(tx *Tx) error { _, err := tx.Exec(ctx, "CREATE TABLE r (v TEXT)"); return err }); err != nil {
		t.Fatal(err)
	}
	errs = map[string]error{}
	var mu sync.Mutex
	var all sync.WaitGroup
	hold := make(chan struct{})
	for i, name := range names {
		w := special[name]
		if w.ctx == nil {
			w.ctx = ctx
		}
		all.Go(func() {
			err := d.Write(w.ctx, func(tx *Tx) error {
				if i == 0 {
					<-hold
				}
				if w.before != nil {
					w.before()
					synctest.Wait() // until the effects of before are done
				}
				_, err := tx.Exec(w.ctx, "INSERT INTO r (v) VALUES ($1);"+w.more, name)
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			errs[name] = err
		})
		synctest.Wait() // it runs, or is queued
	}
	close(hold)
	all.Wait()
	err = d.Read(ctx, func(tx *Tx) (err error) {
		rows, err = All(ctx, tx, Column[string], "SELECT v FROM r ORDER BY v")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return errs, rows
}

// A writer that is refused because of what another wrote finds it when it looks.
func TestARefusalComesAfterItsReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		d, err := Open(ctx, "sqlite:"+filepath.Join(t.TempDir(), "x.db"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = d.Close() }()
		if err := d.Exec(ctx, "CREATE TABLE r (v TEXT PRIMARY KEY)"); err != nil {
			t.Fatal(err)
		}
		hold := make(chan struct{})
		insert := func(before func()) error {
			return d.Write(ctx, func(tx *Tx) error {
				before()
				_, err := tx.Exec(ctx, "INSERT INTO r (v) VALUES ('a')")
				return err
			})
		}
		var all sync.WaitGroup
		all.Go(func() { _ = insert(func() { <-hold }) })
		synctest.Wait()
		all.Go(func() {
			if err := insert(func() {}); err == nil {
				t.Error("the row was inserted twice")
			}
			var n int
			if err := d.QueryRow(ctx, "SELECT count(*) FROM r").Scan(&n); err != nil || n != 1 {
				t.Errorf("%d rows (%v), want the one that was in the way", n, err)
			}
		})
		synctest.Wait()
		all.Go(func() { _ = insert(synctest.Wait) }) // the group is open until everybody waits for it
		synctest.Wait()
		close(hold)
		all.Wait()
	})
}

func TestGroupKeepsOrderAndOmitsFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		errs, rows := crowd(t, map[string]writing{"b": {more: "INSERT INTO nowhere VALUES (1)"}}, "a", "b", "c")
		if want := []string{"a", "c"}; !slices.Equal(rows, want) {
			t.Errorf("rows %q, want %q", rows, want)
		}
		if errs["a"] != nil || errs["b"] == nil || errs["c"] != nil {
			t.Errorf("errors %v, want one for b", errs)
		}
	})
}

// When the database itself drops the transaction, all its writers get an error, and later
// ones are not affected.
func TestLostGroupFailsAllWriters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		errs, rows := crowd(t, map[string]writing{"c": {more: "ROLLBACK"}}, "a", "b", "c", "d")
		if want := []string{"d"}; !slices.Equal(rows, want) {
			t.Errorf("rows %q, want %q", rows, want)
		}
		for _, name := range []string{"a", "b", "c"} {
			if err := errs[name]; err == nil || !strings.Contains(err.Error(), "rolled back") {
				t.Errorf("%s got %v, want that its write was rolled back", name, err)
			}
		}
		if errs["d"] != nil {
			t.Errorf("d got %v", errs["d"])
		}
	})
}

// Writers that wait while another writes share one transaction.
func TestGroupSharesOneCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		d, err := Open(ctx, "sqlite:"+filepath.Join(t.TempDir(), "x.db"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = d.Close() }()
		var all sync.WaitGroup
		hold := make(chan struct{})
		groups := map[*group]int{}
		for i := range 20 {
			all.Go(func() {
				_ = d.Write(ctx, func(*Tx) error {
					if i == 0 {
						<-hold
					}
					groups[d.writer.(*groupWriter).open]++
					return nil
				})
			})
			synctest.Wait()
		}
		close(hold)
		all.Wait()
		if len(groups) != 1 {
			t.Errorf("20 waiting writers made %d commits, want 1", len(groups))
		}
	})
}

// interruption is called by the SQL function interrupt_test. SQL functions belong to the
// process, so there is only one.
var interruption atomic.Pointer[func()]

// A cancel during a statement must not interrupt it: SQLite would roll back the whole
// transaction, including what others have written.
func TestCancelInsideAStatementAffectsNoOther(t *testing.T) {
	_ = sqlite.RegisterScalarFunction("interrupt_test", 0, // an error means that it is registered already
		func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
			(*interruption.Load())()
			return "x", nil
		})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		stop := func() { cancel() }
		interruption.Store(&stop)
		errs, rows := crowd(t, map[string]writing{
			"b": {ctx: ctx, more: `INSERT INTO r SELECT interrupt_test() UNION ALL SELECT * FROM (
				WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 30000) SELECT i FROM n WHERE i < 0)`},
		}, "a", "b", "c")
		if want := []string{"a", "b", "c", "x"}; !slices.Equal(rows, want) {
			t.Errorf("rows %q, want %q; errors %v", rows, want, errs)
		}
	})
}

// The context of a group's first writer may end before the commit; all parts are stored.
func TestGroupOutlivesItsFirstContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		errs, rows := crowd(t, map[string]writing{"a": {ctx: ctx}, "b": {before: cancel}}, "a", "b")
		if want := []string{"a", "b"}; !slices.Equal(rows, want) {
			t.Errorf("rows %q, want %q; errors %v", rows, want, errs)
		}
	})
}

func TestCloseRefusesQueuedWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, err := Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "x.db"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		hold, closed, late := make(chan struct{}), make(chan error, 1), make(chan error, 1)
		go func() { _ = d.Write(t.Context(), func(*Tx) error { <-hold; return nil }) }()
		synctest.Wait()
		go func() { closed <- d.writer.close() }()
		synctest.Wait()
		go func() { late <- d.writer.write(context.Background(), func(*Tx) error { return nil }) }()
		synctest.Wait()
		close(hold)
		if err := <-closed; err != nil {
			t.Errorf("close: %v", err)
		}
		if err := <-late; err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("a write after close = %v, want the error of a closed database", err)
		}
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}
