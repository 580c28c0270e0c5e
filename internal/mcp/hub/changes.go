package hub

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// listChanges are the notifications that are debounced.
var listChanges = []string{wire.NoteToolsChanged, wire.NotePromptsChanged, wire.NoteResourcesChanged}

// changed passes a notification of the backend to the clients that want it; to says for
// whom it is, nil: for everybody. Changes of a list are debounced, and sent to those for
// whom the list is really different.
func (e *endpoint) changed(method string, params json.RawMessage, to func(principal.Principal) bool) {
	if method == wire.NoteTask {
		e.taskChanged(taskID(params))
		return
	}
	if !slices.Contains(listChanges, method) {
		e.broadcast(method, params, func(a *audience) bool { return to == nil || to(a.who) })
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.changes[method] != nil {
		return
	}
	e.changes[method] = time.AfterFunc(e.hub.opts.Limits.Debounce, func() {
		e.mu.Lock()
		delete(e.changes, method)
		e.mu.Unlock()
		e.hub.spawn(func(ctx context.Context) { e.notifyOfList(ctx, method) })
	})
}

// notifyOfList notifies those clients for whom a list is different now.
func (e *endpoint) notifyOfList(ctx context.Context, method string) {
	all, viewers := e.audiences()
	different := map[audienceKey]bool{}
	for key, a := range all {
		different[key] = e.backend.listChanged(a.in(ctx), method)
	}
	e.backend.forgetLists(func(viewer string) bool { return !viewers[viewer] })
	e.broadcast(method, nil, func(a *audience) bool { return different[a.audienceKey] })
}

// broadcast sends a notification to the sessions and listeners whom it is for.
func (e *endpoint) broadcast(method string, params json.RawMessage, isFor func(*audience) bool) {
	uri := ""
	if method == wire.NoteResourceUpdated {
		uri = uriOf(params)
	}
	note := wire.Notification(method, wire.StripProtocol(params))
	message := note.Append(nil)
	for _, s := range e.sessions.list() {
		if s.wants(method, uri, params) && isFor(s.audience()) {
			s.main.offer(message)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for l := range e.listeners {
		if l.wants(method, uri) && isFor(l.audience) {
			l.notify(note)
		}
	}
}

// wants tells whether a session wants a notification.
func (s *session) wants(method, uri string, params json.RawMessage) bool {
	if !s.ready.Load() {
		return false
	}
	switch method {
	case wire.NoteResourceUpdated:
		return s.isSubscribed(uri)
	case wire.NoteMessage:
		name, _ := rawjson.GetText(params, "level")
		at, _ := parseLevel(name)
		return at >= level(s.level.Load())
	}
	return true
}
