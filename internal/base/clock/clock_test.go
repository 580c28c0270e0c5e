package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(clocktest.Settled(m)) }

var start = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// clocks are the implementations, each with a way to let time pass. Inside a synctest
// bubble the real clock advances once all goroutines sleep.
var clocks = map[string]func() (clock.Clock, func(time.Duration)){
	"real": func() (clock.Clock, func(time.Duration)) {
		return clock.Real(), func(d time.Duration) { time.Sleep(d); synctest.Wait() }
	},
	"virtual": func() (clock.Clock, func(time.Duration)) {
		v := clock.NewVirtual(start)
		return v, func(d time.Duration) { synctest.Wait(); v.Advance(d); synctest.Wait() }
	},
}

// each runs test in a bubble of its own against every kind of clock.
func each(t *testing.T, test func(t *testing.T, c clock.Clock, pass func(time.Duration))) {
	for name, open := range clocks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, pass := open()
				test(t, c, pass)
			})
		})
	}
}

func TestSleepLastsAsLongAsAsked(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c clock.Clock, pass func(time.Duration)) {
		began := c.Now()
		woke := make(chan time.Time, 1)
		go func() {
			if err := c.Sleep(t.Context(), time.Minute); err != nil {
				t.Errorf("Sleep: %v", err)
			}
			woke <- c.Now()
		}()
		pass(time.Minute - 1)
		if len(woke) != 0 {
			t.Fatal("Sleep returned early")
		}
		pass(1)
		if got := (<-woke).Sub(began); got != time.Minute {
			t.Errorf("woke after %v, want 1m", got)
		}
	})
}

func TestSleepEndsWithItsContext(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c clock.Clock, pass func(time.Duration)) {
		reason := errors.New("cancelled")
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Sleep(ctx, time.Hour) }()
		pass(time.Second)
		cancel(reason)
		if err := <-done; !errors.Is(err, reason) {
			t.Errorf("Sleep = %v, want the cause of its context", err)
		}
		if err := c.Sleep(ctx, 0); !errors.Is(err, reason) {
			t.Errorf("Sleep(0) after cancel = %v, want the cause", err)
		}
	})
}

func TestSleepOfNothingReturnsAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c clock.Clock, _ func(time.Duration)) {
		began := c.Now()
		for _, d := range []time.Duration{0, -time.Hour} {
			if err := c.Sleep(t.Context(), d); err != nil {
				t.Errorf("Sleep(%v) = %v", d, err)
			}
		}
		if !c.Now().Equal(began) {
			t.Errorf("time moved from %v to %v", began, c.Now())
		}
	})
}

func TestAfterFunc(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c clock.Clock, pass func(time.Duration)) {
		calls := make(chan string, 3)
		c.AfterFunc(0, func() { calls <- "at once" })
		stopRung := c.AfterFunc(time.Second, func() { calls <- "second" })
		stopEarly := c.AfterFunc(time.Second, func() { calls <- "stopped" })
		if !stopEarly() {
			t.Error("stop before time = false, want true")
		}
		pass(time.Second)
		if stopRung() {
			t.Error("stop after the call = true, want false")
		}
		if stopEarly() {
			t.Error("second stop = true, want false")
		}
		if first, second := <-calls, <-calls; first != "at once" || second != "second" {
			t.Errorf("calls = %q, %q", first, second)
		}
		if len(calls) != 0 {
			t.Errorf("stopped function was called: %q", <-calls)
		}
	})
}
