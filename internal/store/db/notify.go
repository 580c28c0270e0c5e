package db

import (
	"context"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
)

// Notification is what a listener receives.
type Notification struct {
	// Payload is the text that was sent.
	Payload string
	// Missed means that notifications may have been missed: read the state that the
	// topic is about. Every listener receives this first, and again after the
	// connection was lost or when it was too slow. The payload is empty then.
	Missed bool
}

var topicName = lazyregexp.New(`^[a-z][a-z0-9_.-]{0,60}$`)

// maxQueued is the number of notifications that may be queued for a listener. If there
// are more, it receives Missed instead.
const maxQueued = 4096

// Notify notifies all listeners of topic, in this process and in all others on the same
// Postgres database, in the order of the calls. It does not wait for delivery, and
// notifications that are queued when this process dies are lost: store what must not be
// missed in a table, and use notifications only to say when to read it.
func (d *DB) Notify(_ context.Context, topic, payload string) error {
	if d.closed.Load() {
		return errClosed()
	}
	n, err := newNote(topic, payload)
	if err == nil {
		d.broker.publish(n)
	}
	return err
}

// Notify is DB.Notify after the commit. It does nothing if the transaction is rolled
// back.
func (t *Tx) Notify(topic, payload string) error {
	n, err := newNote(topic, payload)
	if err == nil {
		t.notes = append(t.notes, n)
	}
	return err
}

// Listen calls handle, one call at a time, for every notification on topic, until ctx
// ends or the database closes.
func (d *DB) Listen(ctx context.Context, topic string, handle func(Notification)) error {
	if d.closed.Load() {
		return errClosed()
	}
	if !topicName().MatchString(topic) {
		return badTopic(topic)
	}
	s := d.broker.subscribe(topic)
	defer d.broker.unsubscribe(s)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-d.broker.over:
			return errClosed()
		case <-s.ready:
		}
		for _, n := range d.broker.take(s) {
			if ctx.Err() != nil {
				break
			}
			handle(n)
		}
	}
}

// note is one notification with its topic.
type note struct{ topic, payload string }

func newNote(topic, payload string) (note, error) {
	if !topicName().MatchString(topic) {
		return note{}, badTopic(topic)
	}
	return note{topic, payload}, nil
}

func badTopic(topic string) error {
	return fault.New(fault.Internal, "%q is not the name of a topic", topic).
		WithHint("use lower-case letters, digits, and . _ - between them")
}

// carrier sends notifications to other processes and receives theirs.
type carrier interface {
	// listen begins to receive; it is called before the first listener joins.
	listen()
	send(...note)
	close()
}

// broker delivers notifications to the listeners of this process.
type broker struct {
	carrier carrier // nil if there are no other processes
	over    chan struct{}

	mu          sync.Mutex
	connected   bool // notifications of other processes arrive
	subscribers map[*subscriber]struct{}
}

// subscriber is one listener.
type subscriber struct {
	topic   string
	ready   chan struct{} // holds one value when notifications are queued
	waiting []Notification
}

func newBroker(d dialect) *broker {
	b := &broker{over: make(chan struct{}), subscribers: map[*subscriber]struct{}{}}
	b.carrier = d.carrier(b)
	b.connected = b.carrier == nil
	return b
}

func (b *broker) publish(notes ...note) {
	switch {
	case len(notes) == 0:
	case b.carrier != nil:
		b.carrier.send(notes...)
	default:
		b.deliver(notes...)
	}
}

// deliver delivers notes to the listeners.
func (b *broker) deliver(notes ...note) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.subscribers {
		for _, n := range notes {
			if n.topic == s.topic {
				s.add(Notification{Payload: n.payload})
			}
		}
	}
}

// setConnected sets whether notifications of other processes arrive. When they do again, all
// listeners may have missed some.
func (b *broker) setConnected(connected bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.connected = connected
	if connected {
		b.missed()
	}
}

// notifyMissed notifies all listeners that notifications were lost.
func (b *broker) notifyMissed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.missed()
}

func (b *broker) missed() {
	for s := range b.subscribers {
		s.waiting = nil
		s.add(Notification{Missed: true})
	}
}

func (b *broker) subscribe(topic string) *subscriber {
	if b.carrier != nil {
		b.carrier.listen()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &subscriber{topic: topic, ready: make(chan struct{}, 1)}
	b.subscribers[s] = struct{}{}
	if b.connected {
		s.add(Notification{Missed: true})
	}
	return s
}

func (b *broker) unsubscribe(s *subscriber) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.subscribers, s)
}

func (b *broker) take(s *subscriber) []Notification {
	b.mu.Lock()
	defer b.mu.Unlock()
	notifications := s.waiting
	s.waiting = nil
	return notifications
}

func (b *broker) close() {
	if b.carrier != nil {
		b.carrier.close()
	}
	close(b.over)
}

// add queues a notification. The caller holds the lock.
func (s *subscriber) add(n Notification) {
	if len(s.waiting) >= maxQueued {
		s.waiting = nil
		n = Notification{Missed: true}
	}
	s.waiting = append(s.waiting, n)
	select {
	case s.ready <- struct{}{}:
	default:
	}
}
