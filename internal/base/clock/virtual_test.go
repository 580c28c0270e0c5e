package clock_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
)

func TestAdvanceWakesInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := clock.NewVirtual(start)
		var mu sync.Mutex
		var woken []time.Duration
		for _, d := range []time.Duration{5, 1, 4, 2, 3} {
			go func() {
				if err := v.Sleep(t.Context(), d*time.Second); err != nil {
					t.Errorf("Sleep: %v", err)
				}
				mu.Lock()
				defer mu.Unlock()
				woken = append(woken, d)
			}()
		}
		for range 4 {
			synctest.Wait()
			v.Advance(time.Second)
		}
		synctest.Wait()
		if want := []time.Duration{1, 2, 3, 4}; !slices.Equal(woken, want) {
			t.Errorf("woken %v, want %v", woken, want)
		}
		v.Advance(time.Hour)
	})
}

// TestAdvanceStandsStillAtEachAlarm checks that within one Advance the clock stops at
// the time of every alarm.
func TestAdvanceStandsStillAtEachAlarm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := clock.NewVirtual(start)
		seen := make(chan time.Duration, 1)
		go func() {
			_ = v.Sleep(t.Context(), time.Second)
			seen <- v.Now().Sub(start)
		}()
		synctest.Wait()
		v.Advance(time.Second)
		if got := <-seen; got != time.Second {
			t.Errorf("sleeper woke at %v, want 1s", got)
		}
		v.Advance(-time.Hour)
		if got := v.Now().Sub(start); got != time.Second {
			t.Errorf("a negative advance moved the clock to %v", got)
		}
	})
}

func TestAwaitSleepers(t *testing.T) {
	t.Parallel()
	v := clock.NewVirtual(start)
	done := make(chan error, 2)
	for range 2 {
		go func() { done <- v.Sleep(t.Context(), time.Second) }()
	}
	if err := v.AwaitSleepers(t.Context(), 2); err != nil {
		t.Fatalf("AwaitSleepers: %v", err)
	}
	v.Advance(time.Second)
	for range 2 {
		if err := <-done; err != nil {
			t.Errorf("Sleep: %v", err)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := v.AwaitSleepers(ctx, 1); err == nil {
		t.Error("AwaitSleepers with a done context and no sleepers = nil")
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	v := clock.NewVirtual(start)
	var sleepers sync.WaitGroup
	for i := range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		sleepers.Go(func() { _ = v.Sleep(ctx, time.Duration(i+1)*time.Millisecond) })
		sleepers.Go(func() {
			if i%2 == 0 {
				cancel()
			}
		})
		t.Cleanup(cancel)
	}
	if err := v.AwaitSleepers(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	finished := make(chan struct{})
	go func() { sleepers.Wait(); close(finished) }()
	for {
		select {
		case <-finished:
			return
		default:
			v.Advance(time.Millisecond)
		}
	}
}
