package event

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
)

// DefaultBuffer is how many unread events a subscription keeps.
const DefaultBuffer = 256

// All, as Options.After, replays everything the bus still keeps.
const All uint64 = math.MaxUint64

// OtherBus, as After, is for a reader that saw the events of another bus: it is
// told that it missed some, and then all events the bus still has.
const OtherBus uint64 = math.MaxUint64 - 1

// ErrClosed is what Next returns once the subscription or its bus is closed.
var ErrClosed = errors.New("event subscription is closed")

// Mode is the promise a subscription is given.
type Mode uint8

const (
	// Every delivers each event in order and counts what it had to drop.
	Every Mode = iota
	// Latest delivers the newest event per type and key.
	Latest
)

// Options say what a subscription wants to see.
type Options struct {
	// Types are exact ("job.finished") or a prefix ("upstream.*"). None means all.
	Types []string
	// Wants, if given, is asked about every type besides, now and later. It is called
	// while locks are held.
	Wants func(kind string) bool
	// Mode is the promise; Every by default.
	Mode Mode
	// Buffer bounds the unread events; zero or less means DefaultBuffer.
	Buffer int
	// After replays what the bus keeps of the events after this sequence number
	// before any new one, without gap or repetition. Zero means new ones only, All
	// everything kept. When some are no longer kept the first event is a Missed;
	// so it is for a number this bus has not reached, which some earlier bus gave
	// out, and then all that is kept follows.
	After uint64
	// IncludeRemote also gives what happens on other nodes. Those who act on events
	// leave it: every node acts on its own.
	IncludeRemote bool
}

// Subscription is one reader's place on the bus. Several goroutines may read it;
// each event goes to one of them.
type Subscription struct {
	bus   *Bus
	types []string
	some  func(kind string) bool // nil: all of types
	all   bool                   // other nodes' too
	wake  chan struct{}          // holds a token while something may be waiting to be read
	done  chan struct{}          // closed when nothing more will come

	mu     sync.Mutex
	queue  queue
	gap    bool   // events are missing before what is in the queue
	missed uint64 // how many
	upTo   Event  // the newest of them
	ended  bool
}

func newSubscription(b *Bus, o Options) *Subscription {
	if o.Buffer <= 0 {
		o.Buffer = DefaultBuffer
	}
	s := &Subscription{
		bus: b, types: o.Types, some: o.Wants, all: o.IncludeRemote,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if o.Mode == Latest {
		s.queue = newLatest(o.Buffer)
	} else {
		s.queue = &ring{bound: o.Buffer}
	}
	return s
}

// Want adds types to those the subscription asked for, from now on. One that
// asked for none sees all types already.
func (s *Subscription) Want(types ...string) {
	s.bus.mu.Lock() // which offer is called under
	defer s.bus.mu.Unlock()
	if len(s.types) > 0 {
		s.types, s.bus.heard = slices.Concat(s.types, types), nil
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

// Poll is Next without waiting: it tells whether an event was there.
func (s *Subscription) Poll() (Event, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.take()
	if ok && s.queue.len() > 0 {
		s.signal() // there is more, and another reader may have lost its token to us
	}
	return e, ok
}

// All ranges over the events until the subscription is closed or ctx is done.
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

// Close ends the subscription and drops what was not read. It may be called
// more than once and while others wait in Next.
func (s *Subscription) Close() {
	s.bus.remove(s)
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.clear()
	s.forgive()
}

// end says that nothing more will come.
func (s *Subscription) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.ended = true
		close(s.done)
	}
}

// offer queues e, whose type is listened for, if it is wanted.
func (s *Subscription) offer(e Event) {
	if !s.agrees(e.Type) || e.Node != "" && !s.all {
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

// skip tells the reader that n events up to the one given are not to be had.
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
	s.forgive()
	return e, true
}

// forgive forgets the gap: it was told, or nobody will ask.
func (s *Subscription) forgive() { s.gap, s.missed, s.upTo = false, 0, Event{} }

func (s *Subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// listens tells whether events of a type were asked for. That some of another node's
// were missed is told in any case: nobody knows which.
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

// agrees tells whether those of a type that is listened for are wanted now.
func (s *Subscription) agrees(kind string) bool {
	return s.some == nil || isMissed(kind) || s.some(kind)
}

func isMissed(kind string) bool { return kind == Missed{}.EventType() }
