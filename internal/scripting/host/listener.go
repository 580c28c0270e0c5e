package host

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
)

// Listener receives events from the bus for one run. It subscribes when the script first
// asks for a type of event, and buffers events until they are read. It is safe for
// concurrent use; Close it when the run ends.
type Listener struct {
	bus *event.Bus

	mu     sync.Mutex
	sub    *event.Subscription
	closed bool
}

// NewListener listens to bus; if bus is nil there are no events.
func NewListener(bus *event.Bus) *Listener { return &Listener{bus: bus} }

// Subscribe adds types of events, exact ("job.finished") or by prefix ("upstream.*"), of
// those that the principal of ctx sees.
func (l *Listener) Subscribe(ctx context.Context, types ...string) error {
	if l == nil || l.bus == nil {
		return fault.New(fault.Unavailable, "events are not available in this run")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return fault.New(fault.Cancelled, "the run has ended")
	case l.sub == nil:
		l.sub = l.bus.SubscribeAs(principal.Of(ctx), event.Options{Types: types})
	default:
		l.sub.Want(types...)
	}
	return nil
}

// Subscribed reports whether the script subscribed to any type.
func (l *Listener) Subscribed() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sub != nil
}

// Next waits for an event until the clock has advanced by wait; a negative wait lasts
// until ctx ends. It returns false if none arrived.
func (l *Listener) Next(ctx context.Context, clock *Clock, wait time.Duration) (event.Event, bool, error) {
	l.mu.Lock()
	sub := l.sub
	l.mu.Unlock()
	if sub == nil {
		return event.Event{}, false, fault.New(fault.InvalidParams, "the script has no event handlers").
			WithHint("call on(type, fn) first")
	}
	if e, ok := sub.Poll(); ok || wait == 0 {
		return e, ok, nil
	}
	if clock.instant { // a rehearsal cannot know which events would arrive
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

// errWaited ends a wait after its timeout.
var errWaited = errors.New("no event came in time")

// Close unsubscribes.
func (l *Listener) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.sub != nil {
		l.sub.Close()
	}
}
