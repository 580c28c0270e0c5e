package clock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	baseclock "github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/scripting/host"
)

// disk stores the records of a journal.
type disk struct {
	mu      sync.Mutex
	records [][]byte
}

func (d *disk) Record(data []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.records = append(d.records, append([]byte{}, data...))
	return nil
}

// process runs a script with one effect per entry, as a job that resumes what is on the
// disk.
func (d *disk) process(ctx context.Context, t *testing.T, calls ...[]host.Value) error {
	t.Helper()
	past, err := host.ReadJournal(d.records...)
	if err != nil {
		t.Fatal(err)
	}
	journal := host.NewJournal(d, "test")
	module := Module()
	env := host.NewEnv([]host.Module{module}, host.NewReplay(past, journal), &host.Services{Clock: host.NewClock(baseclock.Real())})
	for _, call := range calls {
		name, _ := call[0].(string)
		if _, err := env.Call(ctx, "clock", module.Func(name), call[1:]); err != nil {
			return err
		}
	}
	return d.Record(journal.End())
}

// TestResumedSleepTakesWhatWasLeft stops a run twice while it sleeps.
func TestResumedSleepTakesWhatWasLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, began := &disk{}, time.Now()
		sleep := []host.Value{"sleep", int64(60_000)}
		for range 2 {
			ctx, cancel := context.WithTimeoutCause(t.Context(), 25*time.Second, errors.New("killed"))
			if err := d.process(ctx, t, []host.Value{"now"}, sleep); err == nil {
				t.Fatal("the run was not stopped")
			}
			cancel()
		}
		if err := d.process(t.Context(), t, []host.Value{"now"}, sleep); err != nil {
			t.Fatal(err)
		}
		if slept := time.Since(began); slept != time.Minute {
			t.Errorf("slept %s in all, want 1m0s", slept)
		}
		if err := d.process(t.Context(), t, []host.Value{"now"}, sleep); err != nil || time.Since(began) != time.Minute {
			t.Errorf("repeated after %s, %v: it should be answered from the journal", time.Since(began), err)
		}
	})
}

// TestResumedRunAdvancesAgain checks that the run's own clock is set forward also when a
// journal answers.
func TestResumedRunAdvancesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &disk{}
		calls := [][]host.Value{{"start", int64(1000)}, {"advance", int64(500)}}
		if err := d.process(t.Context(), t, calls...); err != nil {
			t.Fatal(err)
		}
		past, err := host.ReadJournal(d.records...)
		if err != nil {
			t.Fatal(err)
		}
		module := Module()
		env := host.NewEnv([]host.Module{module}, host.NewReplay(past, host.Live()), &host.Services{Clock: host.NewClock(baseclock.Real())})
		for _, call := range append(calls, []host.Value{"now"}) {
			name, _ := call[0].(string)
			values, err := env.Call(t.Context(), "clock", module.Func(name), call[1:])
			if err != nil || name == "now" && values[0] != int64(1500) {
				t.Errorf("%s = %v, %v", name, values, err)
			}
		}
	})
}
