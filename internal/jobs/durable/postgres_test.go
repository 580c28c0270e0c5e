package durable_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/jobs/durable"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// TestOnPostgres runs every test that uses a database on Postgres.
func TestOnPostgres(t *testing.T) {
	t.Parallel()
	dbtest.OnPostgres(t,
		TestInterruptedRunContinues, TestCancelEndsTheContext, TestManyRunsAtOnce,
	)
}

// Nodes that start together on an empty database create its tables once.
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

// TestCloseWithoutTheDatabase closes an engine whose server is away, while a run waits to
// record a step.
func TestCloseWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	server := dbtest.StartServer(t)
	d := dbtest.Open(t, server.URL)
	started, away, recorded := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	e, err := durable.Open(context.WithoutCancel(t.Context()), d, func(_ context.Context, run *durable.Run) error {
		started <- struct{}{}
		<-away
		err := run.Record([]byte("step"))
		recorded <- err
		return err
	}, durable.Options{Node: "a", CloseTimeout: time.Second})
	if err == nil {
		err = errors.Join(e.Launch(), e.Start("one"))
	}
	if err != nil {
		t.Fatal(err)
	}
	<-started
	server.Stop(t, "immediate")
	away <- struct{}{}
	if err := e.Close(); err != nil {
		t.Errorf("closed with %v", err)
	}
	if err := <-recorded; err == nil {
		t.Error("recorded without a database")
	}
	d.LimitOutages(0)
}

// A run that other nodes took over twice comes back to the first node, which was never
// restarted.
func TestARunComesBack(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, tables.Postgres(t))
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
			return run.Record([]byte("after the takeover"))
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
		clocktest.Await(t, func() bool { // Await reports what the goroutines wait for
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
	if err := b.Resume(t.Context(), "run"); err != nil {
		t.Fatal(err)
	}
	next()
	taken["a"] <- struct{}{}
	if err := errors.Join(b.RemoveNode("a"), a.RegisterQueue()); err != nil { // as for a node that was considered dead
		t.Fatal(err)
	}
	if err := a.Resume(t.Context(), "run"); err != nil {
		t.Fatal(err)
	}
	if last := next(); last != "a" {
		t.Errorf("node %s continued the run, want a", last)
	}
	taken["b"] <- struct{}{}
}

// Runs that a node resumes before anybody started them end, and none does its work twice.
func TestRunsThatNobodyStartedAreResumed(t *testing.T) {
	t.Parallel()
	const runs = 100
	d := dbtest.Open(t, tables.Postgres(t))
	ended := make(chan string, runs)
	var attempts atomic.Int64
	e, err := durable.Open(context.WithoutCancel(t.Context()), d, func(_ context.Context, run *durable.Run) error {
		attempts.Add(1)
		for range 3 {
			if err := run.Record([]byte("step")); err != nil {
				return err
			}
		}
		ended <- run.ID
		return nil
	}, durable.Options{Node: "a", CloseTimeout: clocktest.Timeout})
	if err != nil {
		t.Fatal(err)
	}
	defer close(t, e)
	if err := e.Launch(); err != nil {
		t.Fatal(err)
	}
	var resumes sync.WaitGroup
	for n := range runs {
		resumes.Go(func() {
			if err := e.Resume(t.Context(), fmt.Sprint("run", n)); err != nil {
				t.Error(err)
			}
		})
	}
	resumes.Wait()
	over := map[string]bool{}
	clocktest.Await(t, func() bool {
		select {
		case id := <-ended:
			over[id] = true
		default:
		}
		return len(over) == runs
	}, func() string { return fmt.Sprintf("%d of %d runs ended", len(over), runs) })
	if n := attempts.Load(); n != runs {
		t.Errorf("%d runs were attempted %d times", runs, n)
	}
}

// The engine and the store divide a small number of connections without a deadlock, and
// the store still works after the engine has closed.
func TestEngineAndStoreDivideTheConnections(t *testing.T) {
	t.Parallel()
	const most, runs = 4, 40
	name := strings.ToLower(rand.Text())
	address := tables.Postgres(t)
	d := dbtest.Open(t, address+"&application_name="+name+"&pool_max_conns="+strconv.Itoa(most))
	observer := dbtest.Open(t, address)
	connections := func() (n int) {
		err := observer.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1", name).Scan(&n)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	table := fstest.MapFS{"migrations/00001_rows.sql": {Data: []byte("-- +goose Up\nCREATE TABLE rows_written (run TEXT PRIMARY KEY);")}}
	if err := d.Migrate(t.Context(), "rows_written", table); err != nil {
		t.Fatal(err)
	}
	insert := func(id string) error {
		return d.Exec(t.Context(), "INSERT INTO rows_written (run) VALUES ($1)", id)
	}
	count := func() (n int, err error) {
		err = d.QueryRow(t.Context(), "SELECT count(*) FROM rows_written").Scan(&n)
		return n, err
	}
	var all sync.WaitGroup
	all.Add(runs)
	e, err := durable.Open(context.WithoutCancel(t.Context()), d, func(_ context.Context, run *durable.Run) error {
		defer all.Done()
		for i := range 5 {
			_, failed := count()
			if err := errors.Join(failed, run.Record([]byte{byte(i)}), insert(fmt.Sprint(run.ID, i))); err != nil {
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
	var n int // a temporary connection may still be open
	clocktest.Await(t, func() bool { n = connections(); return n <= most }, func() string {
		return fmt.Sprintf("%d connections, want at most %d", n, most)
	})
	reading := make(chan struct{}) // while the engine closes
	all.Go(func() {
		reading <- struct{}{}
		for range 50 {
			if _, err := count(); err != nil {
				t.Errorf("read while the engine closes: %v", err)
			}
		}
	})
	<-reading
	close(t, e)
	all.Wait()
	if err := insert("afterwards"); err != nil {
		t.Errorf("write after the engine has closed: %v", err)
	}
	if n, err := count(); err != nil || n != 5*runs+1 {
		t.Errorf("%d rows (%v), want %d", n, err, 5*runs+1)
	}
}
