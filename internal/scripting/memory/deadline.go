package memory

import (
	"context"
	"sync"
	"time"
)

// Deadline is a context whose time does not pass while a share that was given it, or a
// context derived from it, waits for memory: a run's time is its own work, not that of
// the runs it waits for.
type Deadline struct {
	context.Context
	end   context.CancelCauseFunc
	cause error
	outer *Deadline // of the run that this one is part of; nil if there is none

	mu      sync.Mutex
	until   time.Time // when it ends, if it does not wait
	waiting int       // shares that wait
	since   time.Time // when the first of them began
	timer   *time.Timer
}

// deadlineKey is the context key of the innermost Deadline.
type deadlineKey struct{}

// WithDeadline returns a context that ends with cause when the time d has passed, not
// counting waits for memory. cancel ends it before, and releases its resources.
func WithDeadline(ctx context.Context, d time.Duration, cause error) (_ context.Context, cancel context.CancelCauseFunc) {
	inner, end := context.WithCancelCause(ctx)
	t := &Deadline{Context: inner, end: end, cause: cause, until: time.Now().Add(d)}
	t.outer, _ = ctx.Value(deadlineKey{}).(*Deadline)
	t.timer = time.AfterFunc(d, t.expire)
	return t, func(why error) {
		t.timer.Stop()
		end(why)
	}
}

// Deadline returns when the context ends unless it waits until then. While it waits, that
// is unknown.
func (t *Deadline) Deadline() (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting > 0 {
		return t.Context.Deadline()
	}
	if outer, ok := t.Context.Deadline(); ok && outer.Before(t.until) {
		return outer, true
	}
	return t.until, true
}

// Value returns the context itself for its own key.
func (t *Deadline) Value(key any) any {
	if key == (deadlineKey{}) {
		return t
	}
	return t.Context.Value(key)
}

// expire ends the context, unless its end was moved.
func (t *Deadline) expire() {
	t.mu.Lock()
	over := t.waiting == 0 && !time.Now().Before(t.until)
	t.mu.Unlock()
	if over {
		t.end(t.cause)
	}
}

// pause stops the time of the runs that ctx is part of, until resume is called.
func pause(ctx context.Context) (resume func()) {
	first, _ := ctx.Value(deadlineKey{}).(*Deadline)
	for t := first; t != nil; t = t.outer {
		t.pause()
	}
	return func() {
		for t := first; t != nil; t = t.outer {
			t.resume()
		}
	}
}

func (t *Deadline) pause() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting++; t.waiting == 1 {
		t.since = time.Now()
		t.timer.Stop()
	}
}

func (t *Deadline) resume() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting--; t.waiting == 0 {
		t.until = t.until.Add(time.Since(t.since))
		t.timer.Reset(time.Until(t.until))
	}
}
