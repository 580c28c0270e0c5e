package event

import (
	"container/list"
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/core/principal"
)

// DefaultKeep is how many recent events a bus stores for replay.
const DefaultKeep = 1024

// BusOptions are the options of a bus. The zero value is ready to use.
type BusOptions struct {
	Keep  int         // events stored for replay; zero means DefaultKeep, below zero none
	Clock clock.Clock // stamps events; nil means the machine's
}

// Bus numbers events and delivers them to subscriptions. It is safe for concurrent use
// and starts no goroutines.
type Bus struct {
	clock clock.Clock

	mu        sync.Mutex
	seq       uint64
	recent    ring
	subs      []*Subscription
	audiences map[string][]*Subscription // by event type; cleared when subs changes
	closed    bool
}

// New returns a bus.
func New(o BusOptions) *Bus {
	if o.Keep == 0 {
		o.Keep = DefaultKeep
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	return &Bus{clock: o.Clock, recent: ring{bound: max(o.Keep, 0)}}
}

// Publish publishes an event of the program itself: everybody sees it if its type concerns
// everybody, and only those who see everything do otherwise.
func (b *Bus) Publish(p Payload) { b.PublishFor(principal.Owner{}, p) }

// PublishAbout is Publish of what is about an upstream or script. If that is an
// organisation's, it concerns nobody else.
func (b *Bus) PublishAbout(name string, p Payload) {
	_, org := principal.SplitNamespace(name)
	b.PublishFor(principal.Owner{Org: org}, p)
}

// PublishFor gives p, which belongs to an owner, the next sequence number and delivers it to
// the subscriptions of its type. It never waits for them. A nil or closed bus drops p.
func (b *Bus) PublishFor(owner principal.Owner, p Payload) { b.PublishTo(owner, nil, p) }

// PublishTo is PublishFor for an event that readers see, too: the IDs of people.
func (b *Bus) PublishTo(owner principal.Owner, readers []string, p Payload) {
	if b != nil {
		b.publish(Event{Type: p.EventType(), Data: p, Owner: owner, Readers: readers})
	}
}

// HasSubscriber reports whether there is a subscription for events of a type, so that
// a caller can skip building an event. Events that are published anyway are stored for
// replay.
func (b *Bus) HasSubscriber(kind string) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.audience(kind), func(s *Subscription) bool { return s.wanted(kind) })
}

// maxAudiences limits for how many types the audience is cached, because scripts can
// make up types.
const maxAudiences = 1000

// audience returns the subscriptions for events of a type. It is cached, because it is
// called far more often than it changes; mu is held.
func (b *Bus) audience(kind string) []*Subscription {
	listeners, known := b.audiences[kind]
	if known {
		return listeners
	}
	for _, s := range b.subs {
		if s.listens(kind) {
			listeners = append(listeners, s)
		}
	}
	if b.audiences == nil || len(b.audiences) >= maxAudiences {
		b.audiences = make(map[string][]*Subscription)
	}
	b.audiences[strings.Clone(kind)] = listeners
	return listeners
}

// Relay publishes an event of another node to the subscriptions with IncludeRemote.
func (b *Bus) Relay(node string, p Remote) {
	b.publish(Event{Type: p.Type, Data: p, Node: node, Owner: p.Owner, Readers: p.Readers})
}

func (b *Bus) publish(e Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.seq++
	e.Seq, e.Time = b.seq, b.clock.Now()
	b.recent.push(e)
	for _, s := range b.audience(e.Type) {
		s.offer(e)
	}
}

// Last returns the sequence number of the newest event, or zero before the first. A
// caller that takes it before a snapshot of some state and passes it as After misses
// nothing that happened since the snapshot.
func (b *Bus) Last() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seq
}

// Subscribe starts a subscription of the program itself, which gets the events of all
// owners. What passes events on to somebody uses SubscribeAs.
func (b *Bus) Subscribe(o Options) *Subscription { return b.subscribe(newSubscription(b, o), o) }

// SubscribeAs starts a subscription for somebody, who gets only events that are visible to
// them. The caller closes it. On a closed bus the subscription ends at once, after the
// replay.
func (b *Bus) SubscribeAs(who principal.Principal, o Options) *Subscription {
	s := newSubscription(b, o)
	if !who.SeesAll() {
		s.reader = &who
	}
	return b.subscribe(s, o)
}

func (b *Bus) subscribe(s *Subscription, o Options) *Subscription {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.replay(s, o.After)
	if b.closed {
		s.end()
	} else {
		b.subs, b.audiences = append(b.subs, s), nil
	}
	return s
}

// replay delivers to s the events after the sequence number after.
func (b *Bus) replay(s *Subscription, after uint64) {
	if after == 0 || after == b.seq {
		return
	}
	oldest := b.seq - uint64(b.recent.len()) + 1
	switch {
	case after == All:
		after = 0
	case after > b.seq:
		after = 0
		s.skip(0, Event{Seq: oldest - 1, Time: b.clock.Now()})
	case after+1 < oldest:
		s.skip(oldest-after-1, Event{Seq: oldest - 1, Time: b.clock.Now()})
	}
	for i := range b.recent.len() {
		if e := b.recent.at(i); e.Seq > after && s.listens(e.Type) {
			s.offer(e)
		}
	}
}

// Close ends all subscriptions after their readers have read the queued events.
func (b *Bus) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, s := range b.subs {
		s.end()
	}
	b.subs, b.audiences = nil, nil
}

func (b *Bus) remove(s *Subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.subs, s); i >= 0 {
		b.subs, b.audiences = slices.Delete(b.subs, i, i+1), nil
	}
}

// queue holds the unread events of a subscription, up to a bound, in the order of
// their sequence numbers.
type queue interface {
	// push adds e. If that exceeds the bound, the oldest event is dropped and
	// returned.
	push(e Event) (dropped Event, full bool)
	// pop removes and returns the oldest event.
	pop() (Event, bool)
	len() int
	clear()
}

// ring is a queue of every event. It grows by doubling up to its bound, so that it
// stays small for a reader that keeps up.
type ring struct {
	bound int
	slots []Event
	head  int // index of the oldest event
	count int
}

func (r *ring) len() int { return r.count }

// at returns the i-th oldest event.
func (r *ring) at(i int) Event { return r.slots[(r.head+i)%len(r.slots)] }

func (r *ring) push(e Event) (dropped Event, full bool) {
	if r.bound == 0 {
		return e, true
	}
	if r.count == r.bound {
		dropped, full = r.pop()
	}
	if r.count == len(r.slots) {
		r.grow()
	}
	r.slots[(r.head+r.count)%len(r.slots)] = e
	r.count++
	return dropped, full
}

func (r *ring) pop() (Event, bool) {
	if r.count == 0 {
		return Event{}, false
	}
	e := r.slots[r.head]
	r.slots[r.head] = Event{} // releases the payload
	r.head = (r.head + 1) % len(r.slots)
	r.count--
	return e, true
}

func (r *ring) grow() {
	slots := make([]Event, min(max(8, 2*len(r.slots)), r.bound))
	for i := range r.count {
		slots[i] = r.at(i)
	}
	r.slots, r.head = slots, 0
}

func (r *ring) clear() { *r = ring{bound: r.bound} }

// latest is a queue in which an event replaces the unread one of its type and
// key and moves to the end.
type latest struct {
	bound  int
	unread list.List // of *Event
	places map[topic]*list.Element
}

// topic identifies what an event is about.
type topic struct{ kind, key string }

func newLatest(bound int) *latest {
	return &latest{bound: bound, places: make(map[topic]*list.Element)}
}

func topicOf(e *Event) topic {
	t := topic{kind: e.Type}
	if k, ok := e.Data.(Keyed); ok {
		t.key = k.EventKey()
	}
	return t
}

func (l *latest) len() int { return l.unread.Len() }

func (l *latest) push(e Event) (dropped Event, full bool) {
	t := topicOf(&e)
	if place, ok := l.places[t]; ok {
		*place.Value.(*Event) = e
		l.unread.MoveToBack(place)
		return Event{}, false
	}
	if l.unread.Len() == l.bound {
		dropped, full = l.pop()
	}
	unread := new(Event) // not &e, so that replacing allocates nothing
	*unread = e
	l.places[t] = l.unread.PushBack(unread)
	return dropped, full
}

func (l *latest) pop() (Event, bool) {
	front := l.unread.Front()
	if front == nil {
		return Event{}, false
	}
	e := l.unread.Remove(front).(*Event)
	delete(l.places, topicOf(e))
	return *e, true
}

func (l *latest) clear() {
	l.unread.Init()
	clear(l.places)
}

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
