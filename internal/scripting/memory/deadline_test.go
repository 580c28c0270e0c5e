package memory

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

var errLate = errors.New("late")

// The time of a run, and of the run around it, stands still while it waits for memory.
func TestDeadlinePauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(Options{Total: 100, Reserve: 1})
		other := open(t, p, "a", time.Hour)
		if err := other.Take(t.Context(), 99, false); err != nil {
			t.Fatal(err)
		}
		p.first = other
		outer, cancel := WithDeadline(t.Context(), time.Minute, errLate)
		defer cancel(nil)
		inner, cancel := WithDeadline(context.WithValue(outer, errLate, 1), 30*time.Second, errLate)
		defer cancel(nil)
		time.Sleep(20 * time.Second)
		began := time.Now()
		time.AfterFunc(10*time.Minute, other.Close)
		s := open(t, p, "b", time.Hour)
		if err := s.Take(context.WithValue(inner, errLate, 2), 50, true); err != nil || time.Since(began) != 10*time.Minute {
			t.Fatalf("%v after %s", err, time.Since(began))
		}
		if until, ok := inner.Deadline(); !ok || time.Until(until) != 10*time.Second {
			t.Errorf("%s are left, %v", time.Until(until), ok)
		}
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if inner.Err() != nil || outer.Err() != nil {
			t.Errorf("ended early: %v, %v", inner.Err(), outer.Err())
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !errors.Is(context.Cause(inner), errLate) || outer.Err() != nil {
			t.Errorf("after 31 s: %v, outer %v", context.Cause(inner), outer.Err())
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if !errors.Is(context.Cause(outer), errLate) {
			t.Errorf("after 61 s: %v", outer.Err())
		}
		s.Close()
	})
}

// A share whose own wait is over is refused, and the run's time goes on.
func TestDeadlineAfterARefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(Options{Total: 100, Reserve: 1})
		other := open(t, p, "a", time.Hour)
		if err := other.Take(t.Context(), 99, false); err != nil {
			t.Fatal(err)
		}
		p.first = other
		ctx, cancel := WithDeadline(t.Context(), time.Second, errLate)
		defer cancel(nil)
		s := open(t, p, "b", time.Minute)
		if err := s.Take(ctx, 50, true); err == nil || ctx.Err() != nil {
			t.Errorf("%v, context %v", err, ctx.Err())
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !errors.Is(context.Cause(ctx), errLate) {
			t.Errorf("context %v", ctx.Err())
		}
		s.Close()
		other.Close()
	})
}

// Cancelling a run that waits ends the wait.
func TestDeadlineIsCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(Options{Total: 100, Reserve: 1})
		other := open(t, p, "a", time.Hour)
		if err := other.Take(t.Context(), 99, false); err != nil {
			t.Fatal(err)
		}
		p.first = other
		parent, stop := context.WithCancelCause(t.Context())
		ctx, cancel := WithDeadline(parent, time.Second, errLate)
		defer cancel(nil)
		time.AfterFunc(time.Minute, func() { stop(errLate) })
		s := open(t, p, "b", time.Hour)
		if err := s.Take(ctx, 50, true); !errors.Is(err, errLate) {
			t.Error(err)
		}
		s.Close()
		other.Close()
	})
}
