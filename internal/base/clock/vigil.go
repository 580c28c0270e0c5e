package clock

import (
	"sync"
	"time"
)

// Vigil waits for many at once, with one timer for all. It is for what nearly always
// ends long before: to begin and to end a wait costs next to nothing, most of all
// where all are of about the same length. It is safe for concurrent use; its zero
// value is ready.
type Vigil struct {
	mu          sync.Mutex
	first, last *Wait // in the order they are due
	timer       *time.Timer
	at          time.Time // when the timer goes off; zero: it does not
}

// Wait is one of a Vigil's. The zero value waits for nothing.
type Wait struct {
	who        Waiter // nil: nobody waits
	due        time.Time
	prev, next *Wait
}

// Waiter is told when its time has passed. It must not take long.
type Waiter interface{ Overdue() }

// Begin has who told after so long, unless w ends first. w must not be waiting.
func (v *Vigil) Begin(w *Wait, who Waiter, after time.Duration) {
	now := time.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	w.who = who
	v.insert(w, now, now.Add(after))
}

// Move has a wait end after so long from now on. One that has ended stays so.
func (v *Vigil) Move(w *Wait, after time.Duration) {
	now := time.Now()
	v.mu.Lock()
	defer v.mu.Unlock()
	if w.who != nil {
		v.remove(w)
		v.insert(w, now, now.Add(after))
	}
}

// End ends a wait, and tells whether it was waiting still: otherwise who was told.
func (v *Vigil) End(w *Wait) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if w.who == nil {
		return false
	}
	v.remove(w)
	w.who = nil
	return true
}

// look tells those whose time has passed.
func (v *Vigil) look() {
	for _, who := range v.overdue(time.Now()) {
		who.Overdue()
	}
}

// overdue takes them out, and sets the timer for who is next. Those it was set for may
// have ended meanwhile.
func (v *Vigil) overdue(now time.Time) (list []Waiter) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for v.first != nil && !v.first.due.After(now) {
		w := v.first
		list = append(list, w.who)
		v.remove(w)
		w.who = nil
	}
	v.at = time.Time{}
	if v.first != nil {
		v.arm(now, v.first.due)
	}
	return list
}

// insert puts w into the line. v.mu is held.
func (v *Vigil) insert(w *Wait, now, due time.Time) {
	w.due = due
	var next *Wait
	prev := v.last
	for prev != nil && prev.due.After(due) {
		prev, next = prev.prev, prev
	}
	v.join(prev, w)
	v.join(w, next)
	if v.at.IsZero() || due.Before(v.at) {
		v.arm(now, due)
	}
}

// remove takes w out of the line. v.mu is held.
func (v *Vigil) remove(w *Wait) {
	v.join(w.prev, w.next)
	w.prev, w.next = nil, nil
}

// join has b stand behind a; nil is what stands before the first, and behind the last.
func (v *Vigil) join(a, b *Wait) {
	if a == nil {
		v.first = b
	} else {
		a.next = b
	}
	if b == nil {
		v.last = a
	} else {
		b.prev = a
	}
}

// arm has the timer go off. v.mu is held.
func (v *Vigil) arm(now, at time.Time) {
	v.at = at
	if v.timer == nil {
		v.timer = time.AfterFunc(at.Sub(now), v.look)
	} else {
		v.timer.Reset(at.Sub(now))
	}
}

// Rest stops the timer, if nobody waits, until somebody does.
func (v *Vigil) Rest() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.first == nil && v.timer != nil {
		v.timer.Stop()
		v.at = time.Time{}
	}
}
