package event

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/core/principal"
)

// DefaultBuffer is how many unread events a subscription holds.
const DefaultBuffer = 256

// All, as Options.After, replays all events that the bus stores.
const All uint64 = math.MaxUint64

// OtherBus, as After, is for a reader that saw the events of another bus. It gets a
// Missed event, and then all events that the bus stores.
const OtherBus uint64 = math.MaxUint64 - 1

// ErrClosed is returned by Next after the subscription or its bus was closed.
var ErrClosed = errors.New("event subscription is closed")

// Mode says which events a subscription delivers.
type Mode uint8

const (
	// Every delivers each event in order and counts the dropped ones.
	Every Mode = iota
	// Latest delivers the newest event per type and key.
	Latest
)

// Options are the options of a subscription.
type Options struct {
	// Types are exact ("job.finished") or a prefix ("upstream.*"). None means all.
	Types []string
	// Wants, if not nil, must also return true for the type of an event. It is called
	// for every event, while locks are held.
	Wants func(kind string) bool
	// Mode is Every by default.
	Mode Mode
	// Buffer limits the unread events; zero or less means DefaultBuffer.
	Buffer int
	// After replays the stored events after this sequence number before any new one,
	// without gap or repetition. Zero means new events only, All means all stored
	// ones. If some are no longer stored, the first event is a Missed. A number that
	// this bus has not reached comes from an earlier bus: the first event is a Missed
	// then too, and all stored events follow.
	After uint64
	// IncludeRemote also delivers the events of other nodes. Subscribers that act on
	// events leave it unset, because every node acts on its own events.
	IncludeRemote bool
}

// Subscription receives events of a bus. Several goroutines may read it; each event
// goes to one of them.
type Subscription struct {
	bus    *Bus
	types  []string
	wants  func(kind string) bool // nil: all of types
	remote bool                   // events of other nodes too
	reader *principal.Principal   // who gets the events; nil: somebody who sees all
	wake   chan struct{}          // has a token while there may be something to read
	done   chan struct{}          // closed when no more events will come

	mu     sync.Mutex
	queue  queue
	gap    bool   // events are missing before what is in the queue
	missed uint64 // how many
	upTo   Event  // the newest missed event
	ended  bool
}

func newSubscription(b *Bus, o Options) *Subscription {
	if o.Buffer <= 0 {
		o.Buffer = DefaultBuffer
	}
	s := &Subscription{
		bus: b, types: o.Types, wants: o.Wants, remote: o.IncludeRemote,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if o.Mode == Latest {
		s.queue = newLatest(o.Buffer)
	} else {
		s.queue = &ring{bound: o.Buffer}
	}
	return s
}

// Want adds types to those of the subscription, from now on. A subscription without
// types gets all types already.
func (s *Subscription) Want(types ...string) {
	s.bus.mu.Lock() // offer is called with this lock held
	defer s.bus.mu.Unlock()
	if len(s.types) > 0 {
		s.types, s.bus.audiences = slices.Concat(s.types, types), nil
	}
}

// Next waits for the next event. It returns ErrClosed when no more will come,
// or the cause of ctx; events already queued are returned even then.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	for {
		if e, ok := s.Poll(); ok {
			return e, nil
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return Event{}, context.Cause(ctx)
		case <-s.done:
			if e, ok := s.Poll(); ok {
				return e, nil
			}
			return Event{}, ErrClosed
		}
	}
}

// Poll is Next without waiting. It reports whether there was an event.
func (s *Subscription) Poll() (Event, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.take()
	if ok && s.queue.len() > 0 {
		s.signal() // there is more, and another reader may have lost its token to this one
	}
	return e, ok
}

// All iterates over the events until the subscription is closed or ctx is done.
func (s *Subscription) All(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for {
			e, err := s.Next(ctx)
			if err != nil || !yield(e) {
				return
			}
		}
	}
}

// Close ends the subscription and drops unread events. It may be called more than once
// and while other goroutines wait in Next.
func (s *Subscription) Close() {
	s.bus.remove(s)
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.clear()
	s.clearGap()
}

// end marks that no more events will come.
func (s *Subscription) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.ended = true
		close(s.done)
	}
}

// offer queues e, whose type is subscribed to, if it is wanted.
func (s *Subscription) offer(e Event) {
	if !s.wanted(e.Type) || e.Node != "" && !s.remote || s.reader != nil && !e.VisibleTo(*s.reader) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	if dropped, full := s.queue.push(e); full {
		s.miss(1, dropped)
	}
	s.signal()
}

// skip records that n events up to the given one are missing.
func (s *Subscription) skip(n uint64, upTo Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.miss(n, upTo)
	s.signal()
}

func (s *Subscription) miss(n uint64, newest Event) {
	s.gap, s.missed, s.upTo = true, s.missed+n, newest
}

func (s *Subscription) take() (Event, bool) {
	if !s.gap {
		return s.queue.pop()
	}
	m := Missed{Count: s.missed}
	e := Event{Seq: s.upTo.Seq, Time: s.upTo.Time, Type: m.EventType(), Data: m}
	s.clearGap()
	return e, true
}

// clearGap clears the gap after it was delivered, or when the subscription ends.
func (s *Subscription) clearGap() { s.gap, s.missed, s.upTo = false, 0, Event{} }

func (s *Subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// listens reports whether events of a type are subscribed to. Missed events of another
// node are always delivered, because the types of the missed events are unknown.
func (s *Subscription) listens(kind string) bool {
	if len(s.types) == 0 || isMissed(kind) {
		return true
	}
	for _, t := range s.types {
		if prefix, ok := strings.CutSuffix(t, "*"); t == kind || ok && strings.HasPrefix(kind, prefix) {
			return true
		}
	}
	return false
}

// wanted reports whether events of a subscribed type are wanted now.
func (s *Subscription) wanted(kind string) bool {
	return s.wants == nil || isMissed(kind) || s.wants(kind)
}

func isMissed(kind string) bool { return kind == Missed{}.EventType() }
