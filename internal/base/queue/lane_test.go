package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(clocktest.Settled(m)) }

// line is a set of lanes whose runners wait for a signal, and what they did.
type line struct {
	*Lanes
	t    *testing.T
	next chan struct{} // each receive lets one runner finish
	ran  []string      // guarded by the lane itself
	errs map[string]error
	mu   sync.Mutex
	all  sync.WaitGroup
}

func newLine(t *testing.T, o LaneOptions) *line {
	return &line{Lanes: NewLanes(o), t: t, next: make(chan struct{}), errs: map[string]error{}}
}

// join queues name and returns once it runs, waits or was refused.
func (l *line) join(ctx context.Context, key, name string) {
	l.all.Go(func() {
		err := l.Do(ctx, key, func(context.Context) error {
			l.ran = append(l.ran, name)
			<-l.next
			return nil
		})
		l.mu.Lock()
		defer l.mu.Unlock()
		l.errs[name] = err
	})
	synctest.Wait()
}

// finish lets n runners end one after the other.
func (l *line) finish(n int) {
	for range n {
		l.next <- struct{}{}
		synctest.Wait()
	}
}

func TestOneAtATimeInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, LaneOptions{})
		names := []string{"a", "b", "c", "d"}
		for i, name := range names {
			l.join(t.Context(), "user", name)
			if got := l.Len("user"); got != i+1 {
				t.Errorf("Len = %d, want %d", got, i+1)
			}
		}
		for i := range names {
			if !slices.Equal(l.ran, names[:i+1]) {
				t.Fatalf("ran %q, want %q", l.ran, names[:i+1])
			}
			l.finish(1)
		}
		l.all.Wait()
		if len(l.busy) != 0 || l.Len("user") != 0 {
			t.Errorf("idle lanes remain: %v", l.busy)
		}
	})
}

func TestKeysDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, LaneOptions{})
		l.join(t.Context(), "one", "a")
		err := l.Do(t.Context(), "two", func(context.Context) error { return errors.New("mine") })
		if err == nil || err.Error() != "mine" {
			t.Errorf("Do = %v, want what f returned", err)
		}
		l.finish(1)
		l.all.Wait()
	})
}

func TestCancelledWaiterKeepsTheOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, LaneOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		l.join(t.Context(), "k", "a")
		l.join(t.Context(), "k", "b")
		l.join(ctx, "k", "gone")
		l.join(t.Context(), "k", "c")
		cancel()
		synctest.Wait()
		if err := l.errs["gone"]; !errors.Is(err, context.Canceled) || fault.CodeOf(err) != fault.Cancelled {
			t.Errorf("cancelled waiter got %v, want a fault cancelled", err)
		}
		l.finish(3)
		l.all.Wait()
		if want := []string{"a", "b", "c"}; !slices.Equal(l.ran, want) {
			t.Errorf("ran %q, want %q", l.ran, want)
		}
		if len(l.busy) != 0 {
			t.Errorf("idle lanes remain: %v", l.busy)
		}
	})
}

func TestWaitEndsWithTheReason(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		cause error
		want  fault.Code
	}{
		{"plain cause", errors.New("shutting down"), fault.Cancelled},
		{"cause with a code of its own", fault.New(fault.Unavailable, "node is stopping"), fault.Unavailable},
		{"deadline", context.DeadlineExceeded, fault.Timeout},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(tt.cause)
			err := NewLanes(LaneOptions{}).Do(ctx, "k", func(context.Context) error { t.Error("ran"); return nil })
			if !errors.Is(err, tt.cause) || fault.CodeOf(err) != tt.want {
				t.Errorf("Do = %v (%s), want cause %v with code %s", err, fault.CodeOf(err), tt.cause, tt.want)
			}
		})
	}
}

func TestDepth(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ depth, waiting int }{{-1, 0}, {0, DefaultLaneDepth}, {2, 2}} {
		t.Run(fmt.Sprint(tt.depth), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := newLine(t, LaneOptions{Depth: tt.depth})
				for i := range tt.waiting + 1 {
					l.join(t.Context(), "k", fmt.Sprint(i))
				}
				err := l.Do(t.Context(), "k", func(context.Context) error { t.Error("ran"); return nil })
				var f *fault.Error
				if !errors.As(err, &f) || f.Code != fault.Limit || f.Hint == "" {
					t.Fatalf("Do = %#v, want a fault limit_exceeded with a hint", err)
				}
				if got, want := string(f.Details), fmt.Sprintf(`{"depth":%d}`, tt.waiting); got != want {
					t.Errorf("details %s, want %s", got, want)
				}
				l.finish(tt.waiting + 1)
				l.all.Wait()
			})
		})
	}
}

func TestPanicReleasesTheLane(t *testing.T) {
	t.Parallel()
	l := NewLanes(LaneOptions{})
	func() {
		defer func() { _ = recover() }()
		_ = l.Do(t.Context(), "k", func(context.Context) error { panic("boom") })
	}()
	if err := l.Do(t.Context(), "k", func(context.Context) error { return nil }); err != nil {
		t.Errorf("Do after a panic: %v", err)
	}
	if len(l.busy) != 0 {
		t.Errorf("idle lanes remain: %v", l.busy)
	}
}

// TestNothingExpires checks that no caller overtakes a slow one.
func TestNothingExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, LaneOptions{})
		l.join(t.Context(), "k", "slow")
		l.join(t.Context(), "k", "next")
		time.Sleep(1000 * time.Hour)
		if want := []string{"slow"}; !slices.Equal(l.ran, want) {
			t.Errorf("ran %q while the first still held the lane", l.ran)
		}
		l.finish(2)
		l.all.Wait()
	})
}

// TestLaneIsPassedOnByACallerThatGivesUp checks that a caller that gives up just as it
// gets the lane passes it on.
func TestLaneIsPassedOnByACallerThatGivesUp(t *testing.T) {
	t.Parallel()
	for range 50 { // the waiter takes either branch at random
		synctest.Test(t, func(t *testing.T) {
			l := NewLanes(LaneOptions{})
			if err := l.enter(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			waiting := make(chan error)
			go func() { waiting <- l.Do(ctx, "k", func(context.Context) error { return nil }) }()
			synctest.Wait()
			l.mu.Lock() // what leave does, with the cancellation in between
			cancel()
			waiters := l.busy["k"]
			close(waiters.Remove(waiters.Front()).(chan struct{}))
			l.mu.Unlock()
			<-waiting
			if n := l.Len("k"); n != 0 {
				t.Fatalf("%d calls in an idle lane", n)
			}
		})
	}
}

// TestStorm ends the contexts of waiting callers just as they get the lane, for the
// race detector.
func TestStorm(t *testing.T) {
	t.Parallel()
	l := NewLanes(LaneOptions{Depth: 1000})
	var running [2]atomic.Int32
	var all sync.WaitGroup
	for i := range 400 {
		ctx, cancel := context.WithCancel(t.Context())
		all.Go(func() {
			_ = l.Do(ctx, fmt.Sprint(i%2), func(context.Context) error {
				if running[i%2].Add(1) > 1 {
					t.Error("more than one at a time in a lane")
				}
				running[i%2].Add(-1)
				return nil
			})
		})
		all.Go(cancel)
	}
	all.Wait()
	if len(l.busy) != 0 {
		t.Errorf("idle lanes remain: %v", l.busy)
	}
}
