package upstream

import (
	"sync"
	"time"
)

// vigil ends the patience of a session's calls when it is due. It has one timer for
// all: nearly every call is over long before, and leaves it as it is. What it goes off
// for may be gone by then; it is set again for whatever is due next.
type vigil struct {
	mu    sync.Mutex
	timer *time.Timer // nil before the first call
	at    time.Time   // when it goes off; zero when it does not
	first *patience   // of those under way
}

// begin watches over a call.
func (v *vigil) begin(p *patience, now, due time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if p.next = v.first; p.next != nil {
		p.next.prev = p
	}
	v.first = p
	v.set(p, now, due)
}

// move says when a call's patience is due from now on.
func (v *vigil) move(p *patience, now, due time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !p.due.IsZero() {
		v.set(p, now, due)
	}
}

// set sees to it that the timer goes off when p is due, or before. v.mu is held.
func (v *vigil) set(p *patience, now, due time.Time) {
	p.due = due
	if v.at.IsZero() || due.Before(v.at) {
		v.arm(now, due)
	}
}

// arm has the timer go off. v.mu is held.
func (v *vigil) arm(now, at time.Time) {
	v.at = at
	if v.timer == nil {
		v.timer = time.AfterFunc(at.Sub(now), v.look)
	} else {
		v.timer.Reset(at.Sub(now))
	}
}

// look ends what is due.
func (v *vigil) look() {
	for _, p := range v.overdue(time.Now()) {
		p.over()
	}
}

// overdue takes out what is due, and sets the timer for the rest.
func (v *vigil) overdue(now time.Time) (list []*patience) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var next time.Time
	for p := v.first; p != nil; {
		after := p.next
		switch {
		case !p.due.After(now):
			v.remove(p)
			list = append(list, p)
		case next.IsZero() || p.due.Before(next):
			next = p.due
		}
		p = after
	}
	if v.at = next; !next.IsZero() {
		v.arm(now, next)
	}
	return list
}

// end is told that a call is over.
func (v *vigil) end(p *patience) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !p.due.IsZero() {
		v.remove(p)
	}
}

// remove takes p out. v.mu is held.
func (v *vigil) remove(p *patience) {
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		v.first = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	}
	p.prev, p.next, p.due = nil, nil, time.Time{}
}

// rest stops the timer until there is another call.
func (v *vigil) rest() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.first == nil && v.timer != nil {
		v.timer.Stop()
		v.at = time.Time{}
	}
}
