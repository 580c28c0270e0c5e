package hub

import (
	"context"
	"encoding/json"

	"github.com/luanette/luanette/internal/core/tool"
)

// SessionState is what other nodes need to serve a session.
type SessionState struct {
	Namespace string          // the upstream's namespace, or ""
	Owner     string          // the principal
	Version   string          // of the protocol
	Caps      json.RawMessage // the client's
	Level     string          // of the log messages it wants
	Menu      string          // the list of tools that it asked for
	Agent     string          // the client, as it calls itself
}

// SessionStore stores sessions for all nodes.
type SessionStore interface {
	Save(ctx context.Context, id string, v SessionState) error
	Find(ctx context.Context, id string) (v SessionState, ok bool, err error)
	Delete(ctx context.Context, id string) error
}

// saveSession stores a session for other nodes. After an error it can be used on this node
// only.
func (e *endpoint) saveSession(ctx context.Context, s *session) {
	if e.hub.opts.SessionStore == nil || s.shared {
		return
	}
	version, caps := s.negotiated()
	v := SessionState{Namespace: e.name, Owner: s.who, Version: version, Caps: caps, Level: levels[s.level.Load()], Menu: s.menu, Agent: s.agent}
	if err := e.hub.opts.SessionStore.Save(ctx, s.id, v); err != nil {
		e.hub.log.WarnContext(ctx, "cannot store session for other nodes", "error", err)
	}
}

// loadSession loads a session that was opened on another node. It returns nil if there is
// none with that id, or if it belongs to another principal.
func (e *endpoint) loadSession(ctx context.Context, id, who string) (*session, error) {
	if e.hub.opts.SessionStore == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	v, ok, err := e.hub.opts.SessionStore.Find(ctx, id)
	if err != nil || !ok || v.Namespace != e.name || v.Owner != who {
		return nil, err
	}
	for _, kind := range listChanges {
		e.backend.recordList(tool.WithMenu(ctx, v.Menu), kind)
	}
	s := newSession(ctx, e, who, false)
	s.setID(id)
	s.loaded, s.menu, s.agent = true, v.Menu, v.Agent
	s.initialize(v.Version, v.Caps)
	s.ready.Store(true)
	if want, ok := parseLevel(v.Level); ok {
		s.level.Store(int32(want))
		_ = e.lowerLevel(ctx, want) // without log messages the session can still be used
	}
	return e.sessions.addLoaded(ctx, s), nil
}

// addLoaded adds a loaded session, unless another request has done so meanwhile.
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

// deleteSession removes a session from the store.
func (e *endpoint) deleteSession(ctx context.Context, s *session) {
	if e.hub.opts.SessionStore == nil {
		return
	}
	if err := e.hub.opts.SessionStore.Delete(ctx, s.id); err != nil {
		e.hub.log.WarnContext(ctx, "cannot remove session from the store", "error", err)
	}
}

// eventsOfOtherNode tells whether an event id belongs to the session's stream on another
// node. The stream on this node then starts from its beginning.
func (s *session) eventsOfOtherNode(last string) bool {
	name, number, ok := parseEventID(last)
	return s.loaded && ok && name == mainStream && number > s.main.position()
}
