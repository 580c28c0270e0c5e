package event

import (
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/clock"
)

// DefaultKeep is how many recent events a bus keeps for replay.
const DefaultKeep = 1024

// BusOptions are a bus's choices. The zero value is ready to use.
type BusOptions struct {
	Keep  int         // events kept for replay; zero means DefaultKeep, below zero none
	Clock clock.Clock // stamps events; nil means the machine's
}

// Bus numbers events and hands them to subscriptions. It is safe for concurrent
// use and starts no goroutines.
type Bus struct {
	clock clock.Clock

	mu     sync.Mutex
	seq    uint64
	recent ring
	subs   []*Subscription
	heard  map[string][]*Subscription // audiences, since subs were last changed
	closed bool
}

// New makes a bus.
func New(o BusOptions) *Bus {
	if o.Keep == 0 {
		o.Keep = DefaultKeep
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	return &Bus{clock: o.Clock, recent: ring{bound: max(o.Keep, 0)}}
}

// Publish gives p the next sequence number and hands it to everybody who asked
// for its type. It never waits for them. A nil or closed bus drops p.
func (b *Bus) Publish(p Payload) {
	if b != nil {
		b.publish(Event{Type: p.EventType(), Data: p})
	}
}

// HasSubscriber tells whether somebody listens for events of a type, for those who would
// have work with making one. What is published all the same is kept for later.
func (b *Bus) HasSubscriber(kind string) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.audience(kind), func(s *Subscription) bool { return s.agrees(kind) })
}

// kindsHeard bounds for how many types audiences are known: some are made up by scripts.
const kindsHeard = 1000

// audience is who listens for events of a type, which is asked far more often than it
// changes; mu is held.
func (b *Bus) audience(kind string) []*Subscription {
	listeners, known := b.heard[kind]
	if known {
		return listeners
	}
	for _, s := range b.subs {
		if s.listens(kind) {
			listeners = append(listeners, s)
		}
	}
	if b.heard == nil || len(b.heard) >= kindsHeard {
		b.heard = make(map[string][]*Subscription)
	}
	b.heard[strings.Clone(kind)] = listeners
	return listeners
}

// Relay publishes what another node did, for those who asked for that too.
func (b *Bus) Relay(node string, p Remote) {
	b.publish(Event{Type: p.Type, Data: p, Node: node})
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

// Last is the sequence number of the newest event; zero before the first. Taken
// before a snapshot of some state and given as After, it makes a subscription
// that misses nothing which happened since the snapshot.
func (b *Bus) Last() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seq
}

// Subscribe starts a subscription. The caller closes it. On a closed bus it
// ends at once, after what After replays.
func (b *Bus) Subscribe(o Options) *Subscription {
	s := newSubscription(b, o)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.replay(s, o.After)
	if b.closed {
		s.end()
	} else {
		b.subs, b.heard = append(b.subs, s), nil
	}
	return s
}

// replay hands s what was published after the event numbered after.
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

// Close ends all subscriptions, once their readers have read what is queued.
func (b *Bus) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, s := range b.subs {
		s.end()
	}
	b.subs, b.heard = nil, nil
}

func (b *Bus) remove(s *Subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.subs, s); i >= 0 {
		b.subs, b.heard = slices.Delete(b.subs, i, i+1), nil
	}
}
