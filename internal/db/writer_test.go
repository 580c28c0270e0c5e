package db

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// crowd lets the named writers queue in order behind one that holds the turn,
// all of which insert their name and then do what do says, and returns the
// errors they got and the rows there are in the end.
func crowd(t *testing.T, do map[string]string, names ...string) (errs map[string]error, rows []string) {
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
		all.Go(func() {
			err := d.Write(ctx, func(tx *Tx) error {
				if i == 0 {
					<-hold
				}
				_, err := tx.Exec(ctx, "INSERT INTO r (v) VALUES ($1);"+do[name], name)
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			errs[name] = err
		})
		synctest.Wait() // it runs, or waits in line
	}
	close(hold)
	all.Wait()
	err = d.Read(ctx, func(tx *Tx) (err error) {
		rows, err = All(ctx, tx, func(row Scanner) (v string, err error) { return v, row.Scan(&v) }, "SELECT v FROM r ORDER BY v")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return errs, rows
}

func TestGroupKeepsOrderAndOmitsWhoFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		errs, rows := crowd(t, map[string]string{"b": "INSERT INTO nowhere VALUES (1)"}, "a", "b", "c")
		if want := []string{"a", "c"}; !slices.Equal(rows, want) {
			t.Errorf("rows %q, want %q", rows, want)
		}
		if errs["a"] != nil || errs["b"] == nil || errs["c"] != nil {
			t.Errorf("errors %v, want one for b", errs)
		}
	})
}

// When the database itself drops the transaction, all who had a part in it are
// told, and those who come after are not affected.
func TestGroupThatIsLostTellsEverybody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		errs, rows := crowd(t, map[string]string{"c": "ROLLBACK"}, "a", "b", "c", "d")
		if want := []string{"d"}; !slices.Equal(rows, want) {
			t.Errorf("rows %q, want %q", rows, want)
		}
		for _, name := range []string{"a", "b", "c"} {
			if err := errs[name]; err == nil || !strings.Contains(err.Error(), "undone") {
				t.Errorf("%s got %v, want to hear that its write was undone", name, err)
			}
		}
		if errs["d"] != nil {
			t.Errorf("d got %v", errs["d"])
		}
	})
}

// Those who wait while one writes share its transaction.
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
					groups[d.writer.open]++
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

func TestCloseRefusesWhoWaits(t *testing.T) {
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
			t.Errorf("a write after close = %v, want to hear that it is closed", err)
		}
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}
