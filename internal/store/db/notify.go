package db

import (
	"context"
	"regexp"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
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

var topicName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_.-]{0,60}$`) })

// maxNews is the number of notifications that may be queued for a listener. If there
// are more, it receives Missed instead.
const maxNews = 4096

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
		d.air.say(n)
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

// Listen calls hear, one call at a time, for every notification on topic, until ctx
// ends or the database closes.
func (d *DB) Listen(ctx context.Context, topic string, hear func(Notification)) error {
	if d.closed.Load() {
		return errClosed()
	}
	if !topicName().MatchString(topic) {
		return badTopic(topic)
	}
	ear := d.air.join(topic)
	defer d.air.leave(ear)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-d.air.over:
			return errClosed()
		case <-ear.ready:
		}
		for _, n := range d.air.take(ear) {
			if ctx.Err() != nil {
				break
			}
			hear(n)
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

// air delivers notifications to the listeners of this process.
type air struct {
	carrier carrier // nil if there are no other processes
	over    chan struct{}

	mu    sync.Mutex
	tuned bool // notifications of other processes arrive
	ears  map[*ear]struct{}
}

// ear is one listener.
type ear struct {
	topic   string
	ready   chan struct{} // holds one value when notifications are queued
	waiting []Notification
}

func newAir(d dialect) *air {
	a := &air{over: make(chan struct{}), ears: map[*ear]struct{}{}}
	a.carrier = d.carrier(a)
	a.tuned = a.carrier == nil
	return a
}

func (a *air) say(notes ...note) {
	switch {
	case len(notes) == 0:
	case a.carrier != nil:
		a.carrier.send(notes...)
	default:
		a.hear(notes...)
	}
}

// hear delivers notes to the listeners.
func (a *air) hear(notes ...note) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for e := range a.ears {
		for _, n := range notes {
			if n.topic == e.topic {
				e.add(Notification{Payload: n.payload})
			}
		}
	}
}

// tune sets whether notifications of other processes arrive. When they do again, all
// listeners may have missed some.
func (a *air) tune(tuned bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tuned = tuned
	if tuned {
		a.missed()
	}
}

// gap notifies all listeners that notifications were lost.
func (a *air) gap() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.missed()
}

func (a *air) missed() {
	for e := range a.ears {
		e.waiting = nil
		e.add(Notification{Missed: true})
	}
}

func (a *air) join(topic string) *ear {
	if a.carrier != nil {
		a.carrier.listen()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	e := &ear{topic: topic, ready: make(chan struct{}, 1)}
	a.ears[e] = struct{}{}
	if a.tuned {
		e.add(Notification{Missed: true})
	}
	return e
}

func (a *air) leave(e *ear) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.ears, e)
}

func (a *air) take(e *ear) []Notification {
	a.mu.Lock()
	defer a.mu.Unlock()
	news := e.waiting
	e.waiting = nil
	return news
}

func (a *air) close() {
	if a.carrier != nil {
		a.carrier.close()
	}
	close(a.over)
}

// add queues a notification. The caller holds the lock.
func (e *ear) add(n Notification) {
	if len(e.waiting) >= maxNews {
		e.waiting = nil
		n = Notification{Missed: true}
	}
	e.waiting = append(e.waiting, n)
	select {
	case e.ready <- struct{}{}:
	default:
	}
}
