package hub

import (
	"context"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// sessions are those of one endpoint.
type sessions struct {
	max int

	mu   sync.Mutex
	byID map[string]*session
}

func newSessions(max int) *sessions {
	return &sessions{max: max, byID: map[string]*session{}}
}

// add adds a session. At the limit it ends the session that was unused for longest; if all
// are in use, it refuses the new one.
func (all *sessions) add(ctx context.Context, s *session) error {
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(all.byID) >= all.max && !all.evict(ctx) {
		return fault.New(fault.Limit, "%d sessions are open already", all.max).
			WithHint("close sessions you no longer need, or try again later")
	}
	all.byID[s.id] = s
	return nil
}

func (all *sessions) evict(ctx context.Context) bool {
	var oldest *session
	now := time.Now()
	for _, s := range all.byID {
		if s.idleSince(now) && (oldest == nil || s.lastUsed.Load() < oldest.lastUsed.Load()) {
			oldest = s
		}
	}
	if oldest == nil {
		return false
	}
	delete(all.byID, oldest.id)
	oldest.end(ctx)
	return true
}

// find is the session with an id if it belongs to who, otherwise nil.
func (all *sessions) find(id, who string) *session {
	all.mu.Lock()
	defer all.mu.Unlock()
	s := all.byID[id]
	if s == nil || s.who != who {
		return nil
	}
	s.touch(time.Now())
	return s
}

// remove ends a session.
func (all *sessions) remove(ctx context.Context, s *session) {
	all.mu.Lock()
	delete(all.byID, s.id)
	all.mu.Unlock()
	s.end(ctx)
}

// expire ends the sessions that were not used after a time.
func (all *sessions) expire(ctx context.Context, then time.Time) {
	for _, s := range all.list() {
		if s.idleSince(then) {
			all.remove(ctx, s)
		}
	}
}

func (all *sessions) list() []*session {
	all.mu.Lock()
	defer all.mu.Unlock()
	list := make([]*session, 0, len(all.byID))
	for _, s := range all.byID {
		list = append(list, s)
	}
	return list
}

func (all *sessions) count() int {
	all.mu.Lock()
	defer all.mu.Unlock()
	return len(all.byID)
}

// endStreams ends the streams of messages that belong to no request.
func (all *sessions) endStreams() {
	for _, s := range all.list() {
		if !s.shared {
			s.main.end()
		}
	}
}
