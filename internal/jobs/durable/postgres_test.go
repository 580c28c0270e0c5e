package durable_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/jobs/durable"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOnPostgres is every test that has a database, on the other one.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t,
		TestRunsGoOn, TestCancelEndsTheContext, TestManyRunsAtOnce,
	)
}

// Nodes that start together on an empty database make its tables once.
func TestEnginesOpenedTogether(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	var all sync.WaitGroup
	for range 4 {
		d := dbtest.Open(t, url)
		all.Go(func() {
			e, err := durable.Open(context.WithoutCancel(t.Context()), d, func(context.Context, *durable.Run) error { return nil }, durable.Options{CloseTimeout: clocktest.Timeout})
			if err != nil {
				t.Error(err)
				return
			}
			close(t, e)
		})
	}
	all.Wait()
}

// A run that was taken from a node, and from the next one, comes back to the first,
// which was never restarted.
func TestARunComesBack(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.Postgres(t))
	attempts, taken := make(chan string), map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{})}
	open := func(node string) *durable.Engine {
		e, err := durable.Open(context.WithoutCancel(t.Context()), d, func(ctx context.Context, run *durable.Run) error {
			past, err := run.Past()
			if err != nil {
				t.Error(err)
			}
			if err := run.Record([]byte(node)); err != nil {
				t.Error(err)
			}
			select {
			case attempts <- node:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if len(past) == 2 {
				return nil
			}
			select {
			case <-taken[node]:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			return run.Record([]byte("not its own any more"))
		}, durable.Options{Node: node, CloseTimeout: clocktest.Timeout})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Launch(); err != nil {
			t.Fatal(err)
		}
		return e
	}
	next := func() (node string) {
		t.Helper()
		clocktest.Await(t, func() bool { // or who waits for what is told
			select {
			case node = <-attempts:
				return true
			default:
				return false
			}
		})
		return node
	}
	a, b := open("a"), open("b")
	defer close(t, a)
	defer close(t, b)
	if err := a.Start("run"); err != nil {
		t.Fatal(err)
	}
	next()
	if err := b.Resume("run"); err != nil {
		t.Fatal(err)
	}
	next()
	taken["a"] <- struct{}{}
	if err := errors.Join(b.RemoveNode("a"), a.RegisterQueue()); err != nil { // as of one that was taken for dead
		t.Fatal(err)
	}
	if err := a.Resume("run"); err != nil {
		t.Fatal(err)
	}
	if last := next(); last != "a" {
		t.Errorf("%s went on at last", last)
	}
	taken["b"] <- struct{}{}
}

// The engine and the store share their connections, however few: neither waits for
// the other with one in hand. When the engine closes, the store goes on.
func TestTheStoresConnectionsAreShared(t *testing.T) {
	t.Parallel()
	const most, runs = 4, 40
	name := strings.ToLower(rand.Text())
	address := dbtest.Postgres(t)
	d := dbtest.Open(t, address+"&application_name="+name+"&pool_max_conns="+strconv.Itoa(most))
	onlooker := dbtest.Open(t, address)
	connections := func() (n int) {
		err := onlooker.Read(t.Context(), func(tx *db.Tx) error {
			return tx.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1", name).Scan(&n)
		})
		if err != nil {
			t.Error(err)
		}
		return n
	}
	table := fstest.MapFS{"migrations/00001_kept.sql": {Data: []byte("-- +goose Up\nCREATE TABLE kept (run TEXT PRIMARY KEY);")}}
	if err := d.Migrate(t.Context(), "kept", table); err != nil {
		t.Fatal(err)
	}
	keep := func(id string) error {
		return d.Write(t.Context(), func(tx *db.Tx) error {
			_, err := tx.Exec(t.Context(), "INSERT INTO kept (run) VALUES ($1)", id)
			return err
		})
	}
	kept := func() (n int, err error) {
		err = d.Read(t.Context(), func(tx *db.Tx) error {
			return tx.QueryRow(t.Context(), "SELECT count(*) FROM kept").Scan(&n)
		})
		return n, err
	}
	var all sync.WaitGroup
	all.Add(runs)
	e, err := durable.Open(context.WithoutCancel(t.Context()), d, func(_ context.Context, run *durable.Run) error {
		defer all.Done()
		for i := range 5 {
			_, failed := kept()
			if err := errors.Join(failed, run.Record([]byte{byte(i)}), keep(fmt.Sprint(run.ID, i))); err != nil {
				t.Error(err)
			}
		}
		return nil
	}, durable.Options{Node: "a", CloseTimeout: clocktest.Timeout})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Launch(); err != nil {
		t.Fatal(err)
	}
	var starting sync.WaitGroup
	for i := range runs {
		starting.Go(func() {
			if err := e.Start(fmt.Sprint("run ", i)); err != nil {
				t.Error(err)
			}
		})
	}
	starting.Wait()
	all.Wait()
	var n int // of those that were only for a moment some may not be gone yet
	clocktest.Await(t, func() bool { n = connections(); return n <= most }, func() string {
		return fmt.Sprintf("%d connections, want at most %d", n, most)
	})
	reading := make(chan struct{}) // while the engine closes
	all.Go(func() {
		reading <- struct{}{}
		for range 50 {
			if _, err := kept(); err != nil {
				t.Errorf("read while the engine closes: %v", err)
			}
		}
	})
	<-reading
	close(t, e)
	all.Wait()
	if err := keep("afterwards"); err != nil {
		t.Errorf("write after the engine has closed: %v", err)
	}
	if n, err := kept(); err != nil || n != 5*runs+1 {
		t.Errorf("kept %d (%v), want %d", n, err, 5*runs+1)
	}
}
