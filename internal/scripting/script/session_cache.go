package script

import (
	linked "container/list"
	"sync"
)

// readyTurn is a turn of an engine whose states can stay in memory between turns.
type readyTurn interface {
	turn
	// reuse makes the turn run in a state that ready returned before, instead of the
	// saved one.
	reuse(state forkable)
	// ready returns the state after the turn.
	ready() forkable
}

// forkable is a state that can be copied.
type forkable interface {
	fork() (forkable, error)
}

// liveState is a session's state after its last turn, so that the next turn need not
// restore the saved one. It is valid for one version: if the saved version is another,
// another node has changed the session.
type liveState struct {
	id      string
	version int64 // Session.Turns when it was saved
	state   forkable
	size    int64    // of the saved state, to estimate memory
	sum     [32]byte // of the saved bytes
}

// liveStates caches the states of recently used sessions, up to a total weight. A state
// in use is not in it. It is safe for concurrent use.
type liveStates struct {
	limit int64
	count func(int64) // is told how the weight changes

	mu     sync.Mutex
	weight int64
	order  *linked.List // of *liveState, most recently used first
	byID   map[string]*linked.Element
}

func newLiveStates(limit int64, count func(int64)) *liveStates {
	return &liveStates{limit: limit, count: count, order: linked.New(), byID: map[string]*linked.Element{}}
}

// stateWeight is the memory of an empty state: its libraries.
const stateWeight = 64 << 10

// copied returns a copy of the state, for a turn that must not change it.
func (l *liveState) copied() (*liveState, error) {
	state, err := l.state.fork()
	return &liveState{state: state, sum: l.sum}, err
}

func (l *liveState) weight() int64 { return stateWeight + 4*l.size }

// version returns the version of the cached state of a session, or -1.
func (s *liveStates) version(id string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byID[id]; e != nil {
		return e.Value.(*liveState).version
	}
	return -1
}

// take removes and returns the state of a session if it has that version; an older one
// is dropped.
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

// put caches a state and drops the least recently used ones.
func (s *liveStates) put(one *liveState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.byID[one.id]; e != nil {
		s.drop(e)
	}
	s.byID[one.id] = s.order.PushFront(one)
	s.add(one.weight())
	for s.weight > s.limit && s.order.Len() > 0 {
		s.drop(s.order.Back())
	}
}

// drop removes an entry; mu is held.
func (s *liveStates) drop(e *linked.Element) *liveState {
	one := s.order.Remove(e).(*liveState)
	delete(s.byID, one.id)
	s.add(-one.weight())
	return one
}

// add changes the total weight; mu is held.
func (s *liveStates) add(weight int64) {
	s.weight += weight
	s.count(weight)
}
