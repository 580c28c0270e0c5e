package hub

import (
	"context"
	"encoding/json"
)

// SessionState is what other nodes need to know of a session to go on with it.
type SessionState struct {
	Namespace string          // the upstream's namespace, or ""
	Owner     string          // whose it is
	Version   string          // of the protocol
	Caps      json.RawMessage // the client's
	Level     string          // of the log messages it wants
}

// SessionStore are the sessions that nodes have in common.
type SessionStore interface {
	Save(ctx context.Context, id string, v SessionState) error
	Find(ctx context.Context, id string) (v SessionState, ok bool, err error)
	Delete(ctx context.Context, id string) error
}

// saveSession lets other nodes know of a session. One they do not know of is served here
// all the same.
func (e *endpoint) saveSession(ctx context.Context, s *session) {
	if e.hub.opts.SessionStore == nil || s.shared {
		return
	}
	version, caps := s.negotiated()
	v := SessionState{Namespace: e.name, Owner: s.who, Version: version, Caps: caps, Level: levels[s.level.Load()]}
	if err := e.hub.opts.SessionStore.Save(ctx, s.id, v); err != nil {
		e.hub.log.WarnContext(ctx, "other nodes do not know of a session", "error", err)
	}
}

// loadSession goes on with a session that another node began: nil when there is none of
// that id, or it is another's. An error means that nobody can tell.
func (e *endpoint) loadSession(ctx context.Context, id, who string) (*session, error) {
	if e.hub.opts.SessionStore == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	v, ok, err := e.hub.opts.SessionStore.Find(ctx, id)
	if err != nil || !ok || v.Namespace != e.name || v.Owner != who {
		return nil, err
	}
	for _, kind := range listChanges {
		e.backend.recordList(ctx, kind)
	}
	s := newSession(e, who, false)
	s.setID(id)
	s.loaded = true
	s.initialize(v.Version, v.Caps)
	s.ready.Store(true)
	if want, ok := parseLevel(v.Level); ok {
		s.level.Store(int32(want))
		_ = e.lowerLevel(ctx, want) // without log messages the session can still be used
	}
	return e.sessions.addLoaded(ctx, s), nil
}

// addLoaded lets an adopted session in, unless another request has done so meanwhile.
func (all *sessions) addLoaded(ctx context.Context, s *session) *session {
	all.mu.Lock()
	before := all.byID[s.id]
	all.mu.Unlock()
	if before != nil && before.who == s.who {
		return before
	}
	if err := all.add(ctx, s); err != nil {
		return nil
	}
	return s
}

// deleteSession ends a session for all nodes.
func (e *endpoint) deleteSession(ctx context.Context, s *session) {
	if e.hub.opts.SessionStore == nil {
		return
	}
	if err := e.hub.opts.SessionStore.Delete(ctx, s.id); err != nil {
		e.hub.log.WarnContext(ctx, "other nodes still know of a session that ended", "error", err)
	}
}

// eventsOfOtherNode tells whether an event id is of a stream that this node cannot
// have: the session was another's. Its own stream then begins anew.
func (s *session) eventsOfOtherNode(last string) bool {
	name, number, ok := parseEventID(last)
	return s.loaded && ok && name == mainStream && number > s.main.position()
}
