package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/jobs/durable"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

func TestMain(m *testing.M) {
	clocktest.SetParallel()
	goleak.VerifyTestMain(clocktest.Settled(m))
}

var tables = dbtest.NewTemplate(durable.CreateTables)

func database(t testing.TB) *db.DB {
	t.Helper()
	return dbtest.Open(t, tables.Fresh(t))
}

func launch(t testing.TB, d *db.DB, work durable.Work) *durable.Engine {
	t.Helper()
	e, err := durable.Open(context.Background(), d, work, durable.Options{CloseTimeout: clocktest.Timeout})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Launch(); err != nil {
		t.Fatal(err)
	}
	return e
}

func close(t testing.TB, e *durable.Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// A run that was interrupted when the engine closed starts again with its records.
func TestInterruptedRunContinues(t *testing.T) {
	t.Parallel()
	d := database(t)
	binary := []byte{0, 255, '\n', 0xc3}
	recorded := make(chan struct{})
	first := launch(t, d, func(ctx context.Context, run *durable.Run) error {
		for i := range 3 {
			if err := run.Record(append([]byte{byte(i)}, binary...)); err != nil {
				t.Error(err)
			}
		}
		recorded <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	if err := first.Start("a"); err != nil {
		t.Fatal(err)
	}
	<-recorded
	close(t, first)

	done := make(chan int, 1)
	second := launch(t, d, func(_ context.Context, run *durable.Run) error {
		past, err := run.Past()
		if err != nil {
			t.Error(err)
		}
		for i, record := range past {
			if !slices.Equal(record, append([]byte{byte(i)}, binary...)) {
				t.Errorf("record %d is %q", i, record)
			}
		}
		if err := run.Record([]byte("one more")); err != nil {
			t.Error(err)
		}
		done <- len(past)
		return nil
	})
	if got := <-done; got != 3 {
		t.Errorf("%d records, want 3", got)
	}
	records, err := second.Records("a")
	if err != nil || len(records) != 4 || string(records[3]) != "one more" {
		t.Errorf("records %q (%v)", records, err)
	}
	clocktest.Await(t, func() bool { return !second.Running("a") }) // a run whose work has not returned is unfinished
	close(t, second)

	third := launch(t, d, func(_ context.Context, run *durable.Run) error {
		t.Errorf("run %s was over and started again", run.ID)
		return nil
	})
	if err := third.Start("a"); err != nil {
		t.Error(err)
	}
	if err := third.Forget("a"); err != nil {
		t.Error(err)
	}
	if records, err := third.Records("a"); err != nil || len(records) != 0 {
		t.Errorf("forgotten run still has records %q (%v)", records, err)
	}
	close(t, third)
}

// All runs that were interrupted when the engine closed continue.
func TestAllInterruptedRunsContinue(t *testing.T) {
	t.Parallel()
	const many = 100
	d := database(t)
	begun := make(chan string, many)
	first := launch(t, d, func(ctx context.Context, run *durable.Run) error {
		begun <- run.ID
		<-ctx.Done()
		return ctx.Err()
	})
	for i := range many {
		if err := first.Start(strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	for range many {
		<-begun
	}
	close(t, first)
	second := launch(t, d, func(_ context.Context, run *durable.Run) error {
		begun <- run.ID
		return nil
	})
	defer close(t, second)
	timeout, cancel := context.WithTimeout(t.Context(), clocktest.Timeout)
	defer cancel()
	for again := map[string]bool{}; len(again) < many; {
		select {
		case id := <-begun:
			again[id] = true
		case <-timeout.Done():
			t.Fatalf("%d of %d continued", len(again), many)
		}
	}
}

func TestCancelEndsTheContext(t *testing.T) {
	t.Parallel()
	running, ended := make(chan struct{}), make(chan error)
	e := launch(t, database(t), func(ctx context.Context, _ *durable.Run) error {
		running <- struct{}{}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil
	})
	defer close(t, e)
	if err := e.Start("a"); err != nil {
		t.Fatal(err)
	}
	<-running
	why := errors.New("enough")
	if !e.Cancel("a", why) || e.Cancel("b", why) {
		t.Error("Cancel reports the wrong runs as active")
	}
	if got := <-ended; !errors.Is(got, why) {
		t.Errorf("cause %v, want %v", got, why)
	}
}

func TestManyRunsAtOnce(t *testing.T) {
	t.Parallel()
	const runs = 50
	var all sync.WaitGroup
	all.Add(runs)
	e := launch(t, database(t), func(_ context.Context, run *durable.Run) error {
		defer all.Done()
		return run.Record([]byte(run.ID))
	})
	defer close(t, e)
	var starting sync.WaitGroup
	for i := range runs {
		starting.Go(func() {
			if err := e.Start(fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
		})
	}
	starting.Wait()
	all.Wait()
}

func BenchmarkLaunch(b *testing.B) {
	d := database(b)
	close(b, launch(b, d, nil))
	for b.Loop() {
		close(b, launch(b, d, nil))
	}
}

// BenchmarkRuns is durable runs that do nothing, started by 64 callers.
func BenchmarkRuns(b *testing.B) {
	var all sync.WaitGroup
	e := launch(b, database(b), func(context.Context, *durable.Run) error { all.Done(); return nil })
	defer close(b, e)
	b.ResetTimer()
	slots := make(chan struct{}, 64)
	for i := range b.N {
		slots <- struct{}{}
		all.Add(1)
		go func() {
			if err := e.Start(fmt.Sprint(i)); err != nil {
				b.Error(err)
			}
			<-slots
		}()
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "runs/s")
}

// BenchmarkRecord is one record of 200 bytes after the other.
func BenchmarkRecord(b *testing.B) {
	done := make(chan struct{})
	e := launch(b, database(b), func(_ context.Context, run *durable.Run) error {
		data := make([]byte, 200)
		for range b.N {
			if err := run.Record(data); err != nil {
				b.Error(err)
			}
		}
		done <- struct{}{}
		return nil
	})
	defer close(b, e)
	b.ResetTimer()
	if err := e.Start("a"); err != nil {
		b.Fatal(err)
	}
	<-done
}
