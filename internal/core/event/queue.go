package event

import "container/list"

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
