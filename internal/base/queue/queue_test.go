package queue_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/base/queue"
)

// TestSlotsAreSharedFairly checks that a name with few waiting callers is served between those
// of a name with many.
func TestSlotsAreSharedFairly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := queue.NewFairSemaphore(1, 100)
		if err := turns.Acquire(t.Context(), "first"); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var served []string
		var all sync.WaitGroup
		for _, name := range []string{"many", "many", "many", "many", "few", "few"} {
			all.Go(func() {
				if err := turns.Acquire(t.Context(), name); err != nil {
					t.Error(err)
				}
				mu.Lock()
				served = append(served, name)
				mu.Unlock()
				turns.Release()
			})
			synctest.Wait() // in this order
		}
		turns.Release()
		all.Wait()
		if want := []string{"many", "few", "many", "few", "many", "many"}; !slices.Equal(served, want) {
			t.Errorf("served %v", served)
		}
		if !turns.Idle() {
			t.Error("the semaphore is not idle")
		}
	})
}

func TestWaitingCallersGiveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := queue.NewFairSemaphore(1, 1)
		if err := turns.Acquire(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp := make(chan error)
		go func() { gaveUp <- turns.Acquire(ctx, "b") }()
		synctest.Wait()
		if err := turns.Acquire(t.Context(), "c"); !errors.Is(err, queue.ErrFull) {
			t.Errorf("beyond the queue: %v", err)
		}
		cancel()
		if err := <-gaveUp; !errors.Is(err, context.Canceled) || turns.Waiting() != 0 {
			t.Errorf("%v, %d wait", err, turns.Waiting())
		}
		turns.Release()
		if !turns.Idle() {
			t.Error("the slot is lost")
		}
	})
}

func TestRates(t *testing.T) {
	t.Parallel()
	var rates queue.RateLimiter
	now := time.Unix(0, 0)
	for i := range 60 {
		if _, ok := rates.Allow("a", 60, now); !ok {
			t.Fatalf("request %d of 60 was refused", i+1)
		}
	}
	if after, ok := rates.Allow("a", 60, now); ok || after != time.Second {
		t.Errorf("request 61: %v, %v", after, ok)
	}
	if _, ok := rates.Allow("b", 60, now); !ok {
		t.Error("another name is refused too")
	}
	if _, ok := rates.Allow("a", 60, now.Add(time.Second)); !ok {
		t.Error("a second later no request is allowed")
	}
	if _, ok := rates.Allow("a", 0, now); !ok {
		t.Error("a request without a limit is refused")
	}
}

// TestLimitChanges raises the limit while callers wait, and lowers it while
// slots are in use.
func TestLimitChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := queue.NewFairSemaphore(1, 10)
		in := make(chan struct{}, 10)
		for range 4 {
			go func() {
				if turns.Acquire(t.Context(), "a") == nil {
					in <- struct{}{}
				}
			}()
			synctest.Wait()
		}
		turns.SetLimit(3)
		synctest.Wait()
		if len(in) != 3 || turns.Waiting() != 1 {
			t.Fatalf("%d have a slot, %d wait", len(in), turns.Waiting())
		}
		turns.SetLimit(1)
		turns.Release()
		turns.Release()
		synctest.Wait()
		if len(in) != 3 {
			t.Error("a caller got a slot although none was free")
		}
		turns.Release()
		synctest.Wait()
		if len(in) != 4 {
			t.Error("the last caller still waits")
		}
		turns.Release()
		if !turns.Idle() {
			t.Error("the semaphore is not idle")
		}
	})
}
