package conversation

import (
	"slices"
	"sync"
	"time"
)

// Place is a place in the line of a person's messages. It is reserved as soon as a
// request was read, so that checks, logging and the database, which can take long under
// load, do not change the order of messages.
type Place struct {
	service  *Service
	person   Person
	line     *personQueue
	received time.Time
	begins   time.Time // until then, messages that were received before it may take a place before it
	turn     chan struct{}
	begun    bool // guarded by the Service
	release  sync.Once
}

// Reserve returns a place in a person's line: after all messages that were received
// before, as far as they were read by now or are soon. The caller sends a message with
// it, or calls Release.
func (r *Service) Reserve(p Person, received time.Time) *Place {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	l := r.enterLocked(p)
	place := &Place{service: r, person: p, line: l, received: received, begins: now.Add(r.lag.margin(now, received)), turn: make(chan struct{}, 1)}
	at := len(l.places)
	for at > 0 && !l.places[at-1].begun && l.places[at-1].received.After(received) {
		at--
	}
	l.places = slices.Insert(l.places, at, place)
	if at == 0 {
		place.turn <- struct{}{}
	}
	return place
}

// wait waits until all messages before it are stored or refused.
func (p *Place) wait() {
	if d := time.Until(p.begins); d > 0 {
		time.Sleep(d)
	}
	for !p.begin() {
		<-p.turn
	}
}

// begin reports whether it is the first; from then on nobody can take a place before it.
func (p *Place) begin() bool {
	p.service.mu.Lock()
	defer p.service.mu.Unlock()
	p.begun = p.line.places[0] == p
	return p.begun
}

// Release lets the next message pass. It can be called more than once.
func (p *Place) Release() {
	p.release.Do(func() {
		p.service.mu.Lock()
		l := p.line
		l.places = slices.DeleteFunc(l.places, func(other *Place) bool { return other == p })
		if len(l.places) > 0 {
			select {
			case l.places[0].turn <- struct{}{}:
			default: // it knows
			}
		}
		p.service.mu.Unlock()
		p.service.leave(p.person, l)
	})
}

// lag is how late requests were read recently, on a machine that is busy.
type lag struct {
	longest time.Duration
	since   time.Time
}

const (
	unnoticed  = 8 * time.Millisecond // how exact received times are: two ticks of the system's clock
	maxMargin  = 500 * time.Millisecond
	remembered = 10 * time.Second
)

// margin returns how long a message waits for others that were received before it and
// read after it: nothing on an idle machine.
func (l *lag) margin(now, received time.Time) time.Duration {
	late := now.Sub(received)
	if late > l.longest || now.Sub(l.since) > remembered {
		l.longest, l.since = late, now
	}
	if l.longest <= unnoticed {
		return 0
	}
	return min(2*l.longest, maxMargin)
}
