package host

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
)

// Listener is a run's ear on the bus. It subscribes when the script first asks
// for a type of event, and keeps what happens from then on until it is read. It
// is safe for concurrent use; Close it when the run ends.
type Listener struct {
	bus *event.Bus

	mu     sync.Mutex
	sub    *event.Subscription
	closed bool
}

// NewListener listens to bus; a nil one has no events.
func NewListener(bus *event.Bus) *Listener { return &Listener{bus: bus} }

// Subscribe adds types of events, exact ("job.finished") or by prefix ("upstream.*").
func (l *Listener) Subscribe(types ...string) error {
	if l == nil || l.bus == nil {
		return fault.New(fault.Unavailable, "this run hears no events")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return fault.New(fault.Cancelled, "the run has ended")
	case l.sub == nil:
		l.sub = l.bus.Subscribe(event.Options{Types: types})
	default:
		l.sub.Want(types...)
	}
	return nil
}

// Subscribed tells whether any type was asked for.
func (l *Listener) Subscribed() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sub != nil
}

// Next waits for an event until the clock has moved by wait; below zero it waits
// as long as ctx lets it. The answer is false when none came.
func (l *Listener) Next(ctx context.Context, clock *Clock, wait time.Duration) (event.Event, bool, error) {
	l.mu.Lock()
	sub := l.sub
	l.mu.Unlock()
	if sub == nil {
		return event.Event{}, false, fault.New(fault.InvalidParams, "the script listens to nothing").
			WithHint("call on(type, fn) first")
	}
	if e, ok := sub.Poll(); ok || wait == 0 {
		return e, ok, nil
	}
	if clock.pretends { // what would happen meanwhile nobody knows
		return event.Event{}, false, clock.Sleep(ctx, max(wait, 0))
	}
	until, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if wait > 0 {
		defer clock.AfterFunc(wait, func() { cancel(errWaited) })()
	}
	e, err := sub.Next(until)
	switch {
	case err == nil:
		return e, true, nil
	case errors.Is(err, errWaited):
		return event.Event{}, false, nil
	case errors.Is(err, event.ErrClosed):
		return event.Event{}, false, fault.New(fault.Unavailable, "no more events will come")
	default:
		return event.Event{}, false, err
	}
}

// errWaited ends a wait whose time is over.
var errWaited = errors.New("no event came in time")

// Close stops listening.
func (l *Listener) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.sub != nil {
		l.sub.Close()
	}
}
