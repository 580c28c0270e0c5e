package script

import (
	linked "container/list"
	"sync"
)

// readyTurn is a turn of an engine whose states can stay in memory between turns.
type readyTurn interface {
	turn
	// adopt has the turn run in a state that ready gave before, and not in what was
	// saved of it.
	adopt(state forkable)
	// ready is the state as the turn left it.
	ready() forkable
}

// forkable is a state that can be copied.
type forkable interface {
	fork() (forkable, error)
}

// liveState is a session's state as its last turn left it, so that the next turn
// need not bring it back from what was saved. It is good for one version: when
// the saved state is another, somebody else has changed the session.
type liveState struct {
	id      string
	version int64 // Session.Turns when it was saved
	state   forkable
	size    int64    // of the saved state: about what it takes
	sum     [32]byte // of the saved bytes
}

// liveStates keeps the states of sessions used lately, up to a weight. One that
// is in use is not in it. It is safe for concurrent use.
type liveStates struct {
	limit int64

	mu     sync.Mutex
	weight int64
	order  *linked.List // of *liveState, the one used last in front
	byID   map[string]*linked.Element
}

func newLiveStates(limit int64) *liveStates {
	return &liveStates{limit: limit, order: linked.New(), byID: map[string]*linked.Element{}}
}

// stateWeight is what a state weighs beside what it holds: its libraries.
const stateWeight = 64 << 10

// copied is the same state for a turn that must leave it alone.
func (l *liveState) copied() (*liveState, error) {
	state, err := l.state.fork()
	return &liveState{state: state, sum: l.sum}, err
}

func (l *liveState) weight() int64 { return stateWeight + 4*l.size }

// version is that of the session's state which is kept, or -1.
func (s *liveStates) version(id string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byID[id]; e != nil {
		return e.Value.(*liveState).version
	}
	return -1
}

// take removes and returns the state of a session if it has that version; an
// older one is dropped.
func (s *liveStates) take(id string, version int64) *liveState {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byID[id]
	if e == nil {
		return nil
	}
	one := s.drop(e)
	if one.version != version {
		return nil
	}
	return one
}

// put keeps a state, and lets go of those that were not used for longest.
func (s *liveStates) put(one *liveState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byID[one.id]; e != nil {
		s.drop(e)
	}
	s.byID[one.id] = s.order.PushFront(one)
	s.weight += one.weight()
	for s.weight > s.limit && s.order.Len() > 0 {
		s.drop(s.order.Back())
	}
}

// drop takes an entry out; mu is held.
func (s *liveStates) drop(e *linked.Element) *liveState {
	one := s.order.Remove(e).(*liveState)
	delete(s.byID, one.id)
	s.weight -= one.weight()
	return one
}
