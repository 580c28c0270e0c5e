package memory

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

func open(t *testing.T, p *Pool, name string, wait time.Duration) *Share {
	t.Helper()
	s, _ := p.Open(t.Context(), name, wait)
	return s
}

func TestRunsWaitInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(Options{Total: 100, Reserve: 1})
		big := open(t, p, "a", time.Second)
		if err := big.Take(t.Context(), 99, false); err != nil {
			t.Fatal(err)
		}
		p.first = big // nobody else may use the reserve
		var mu sync.Mutex
		var order []string
		var wg sync.WaitGroup
		for _, name := range []string{"a", "a", "a", "b"} {
			wg.Go(func() {
				s := open(t, p, name, time.Minute)
				if err := s.Take(t.Context(), 60, true); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				s.Close()
			})
			synctest.Wait()
		}
		big.Close()
		wg.Wait()
		if want := []string{"a", "b", "a", "a"}; !slices.Equal(order, want) {
			t.Errorf("order %v, want %v", order, want)
		}
		if p.Held() != 0 || p.Waiting() != 0 {
			t.Errorf("%d bytes held, %d wait", p.Held(), p.Waiting())
		}
	})
}

// Runs that together need more than there is end one after the other, although each holds
// a part.
func TestNoDeadlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(Options{Total: 1000, Reserve: 110})
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() {
				s, ctx := p.Open(t.Context(), "a", time.Hour)
				defer s.Close()
				for range 11 {
					if err := s.Take(ctx, 10, true); err != nil {
						t.Error(err)
						return
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		wg.Wait()
		if p.Held() != 0 {
			t.Errorf("%d bytes held", p.Held())
		}
	})
}

// A run inside the run that uses the reserve may use it too.
func TestRunInsideARun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(Options{Total: 100, Reserve: 50})
		other := open(t, p, "b", time.Hour)
		if err := other.Take(t.Context(), 50, true); err != nil {
			t.Fatal(err)
		}
		outer, ctx := p.Open(t.Context(), "a", time.Second)
		if err := outer.Take(ctx, 10, true); err != nil {
			t.Fatal(err)
		}
		inner, _ := p.Open(ctx, "a", time.Second)
		if err := inner.Take(ctx, 40, true); err != nil {
			t.Error(err)
		}
		if err := other.Take(t.Context(), 1, false); fault.CodeOf(err) != fault.Limit {
			t.Errorf("another run got memory of the reserve: %v", err)
		}
		outer.Close()
		inner.Close()
		if p.first != nil {
			t.Error("the reserve is still in use")
		}
	})
}

func TestWaitingEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(Options{Total: 100})
		big := open(t, p, "a", time.Second)
		big.Count(200)
		if err := open(t, p, "b", time.Second).Take(t.Context(), 1, true); fault.CodeOf(err) != fault.Limit || fault.HintOf(err) == "" {
			t.Errorf("after a second: %v", err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("stop")
		time.AfterFunc(time.Millisecond, func() { cancel(stop) })
		if err := open(t, p, "b", time.Second).Take(ctx, 1, true); !errors.Is(err, stop) {
			t.Errorf("cancelled: %v", err)
		}
		if p.Waiting() != 0 {
			t.Error("those that gave up still wait")
		}
	})
}

func TestMemoryReturnsAfterABurst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var bursts atomic.Int64
		p := NewPool(Options{Total: 1 << 30, Burst: func() { bursts.Add(1) }})
		s := open(t, p, "a", 0)
		for range 3 {
			s.Count(burstSize)
			s.Give(burstSize)
		}
		synctest.Wait()
		if bursts.Load() != 3 {
			t.Errorf("%d bursts ended, want 3", bursts.Load())
		}
		s.Count(burstSize / 2)
		s.Close()
		synctest.Wait()
		if bursts.Load() != 3 {
			t.Error("a small run counts as a burst")
		}
	})
}
