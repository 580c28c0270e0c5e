package hub

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// listChanges are the notifications that are debounced.
var listChanges = []string{wire.NoteToolsChanged, wire.NotePromptsChanged, wire.NoteResourcesChanged}

// changed passes a notification of the backend to the clients that want it. Changes of a
// list are debounced and sent only if the list is really different.
func (e *endpoint) changed(method string, params json.RawMessage) {
	if method == wire.NoteTask {
		e.taskChanged(taskID(params))
		return
	}
	if !slices.Contains(listChanges, method) {
		e.broadcast(method, params)
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
		e.hub.spawn(func(ctx context.Context) {
			for _, menu := range e.menus(method) {
				if e.backend.listChanged(tool.WithMenu(ctx, menu), method) {
					e.broadcastTo(method, nil, func(other string) bool { return other == menu })
				}
			}
		})
	})
}

// broadcast sends a notification to sessions and listeners.
func (e *endpoint) broadcast(method string, params json.RawMessage) {
	e.broadcastTo(method, params, func(string) bool { return true })
}

// broadcastTo sends a notification to the sessions and listeners with certain menus.
func (e *endpoint) broadcastTo(method string, params json.RawMessage, has func(menu string) bool) {
	uri := ""
	if method == wire.NoteResourceUpdated {
		uri = uriOf(params)
	}
	note := wire.Notification(method, wire.StripProtocol(params))
	message := note.Append(nil)
	for _, s := range e.sessions.list() {
		if s.wants(method, uri, params) && has(s.menu) {
			s.main.offer(message)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for l := range e.listeners {
		if has(l.menu) && l.wants(method, uri) {
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
