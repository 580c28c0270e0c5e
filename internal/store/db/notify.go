package db

import (
	"context"
	"regexp"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
)

// Notification is what a listener hears.
type Notification struct {
	// Payload is what was said.
	Payload string
	// Missed means that things may have been said that nobody heard: look up
	// what the topic is about. Every listener hears this first, and again after
	// the connection was away or when it was too slow. There is no payload then.
	Missed bool
}

var topicName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_.-]{0,60}$`) })

// maxNews is how much may wait for a listener before it is told that it missed
// something instead.
const maxNews = 4096

// Notify tells everybody who listens to topic, in this process and in all others
// on the same Postgres, in the order in which it is called. It does not wait
// until they have heard, and what is said while this process dies may be lost:
// what must not be missed is in a table, and the news only say when to look.
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

// Notify is DB.Notify once the transaction is on disk, and nothing if it is
// undone.
func (t *Tx) Notify(topic, payload string) error {
	n, err := newNote(topic, payload)
	if err == nil {
		t.notes = append(t.notes, n)
	}
	return err
}

// Listen calls hear, one after the other, for everything that is said on topic
// until ctx ends or the database closes.
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

// note is one thing said.
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

// carrier takes what is said to other processes and brings it back to ours.
type carrier interface {
	// listen begins to bring; it is called before the first listener joins.
	listen()
	send(...note)
	close()
}

// air is what is between those who speak and those who listen.
type air struct {
	carrier carrier // nil when nobody is outside
	over    chan struct{}

	mu    sync.Mutex
	tuned bool // what others say arrives
	ears  map[*ear]struct{}
}

// ear is one listener.
type ear struct {
	topic   string
	ready   chan struct{} // holds one when something waits
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

// hear brings notes to who listens.
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

// tune says whether what others say arrives. When it does again, everybody may
// have missed something.
func (a *air) tune(tuned bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tuned = tuned
	if tuned {
		a.missed()
	}
}

// gap tells everybody that something was lost.
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

// add is called under the lock of the air.
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
