package event

import (
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
