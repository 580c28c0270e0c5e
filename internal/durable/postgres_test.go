package durable_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/db/dbtest"
	"github.com/luanette/luanette/internal/durable"
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
			e, err := durable.Open(context.WithoutCancel(t.Context()), d, func(context.Context, *durable.Run) error { return nil }, durable.Options{})
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
			attempts <- node
			if len(past) == 2 {
				return nil
			}
			<-taken[node]
			return run.Record([]byte("not its own any more"))
		}, durable.Options{Node: node})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Launch(); err != nil {
			t.Fatal(err)
		}
		return e
	}
	a, b := open("a"), open("b")
	defer close(t, a)
	defer close(t, b)
	if err := a.Start("run"); err != nil {
		t.Fatal(err)
	}
	<-attempts
	if err := b.Resume("run"); err != nil {
		t.Fatal(err)
	}
	<-attempts
	taken["a"] <- struct{}{}
	if err := errors.Join(b.Bury("a"), a.Return()); err != nil { // as of one that was taken for dead
		t.Fatal(err)
	}
	if err := a.Resume("run"); err != nil {
		t.Fatal(err)
	}
	if last := <-attempts; last != "a" {
		t.Errorf("%s went on at last", last)
	}
	taken["b"] <- struct{}{}
}
