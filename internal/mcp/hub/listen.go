package hub

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// listener is one subscriptions/listen request of a modern client. Its response is a
// stream of the notifications that it requested.
type listener struct {
	round    *response
	audience *audience
	lists    []string       // methods of list changes
	uris     []string       // resources
	tasks    *followedTasks // nil if it requested none
}

func (l *listener) wants(method, uri string) bool {
	if method == wire.NoteResourceUpdated {
		return slices.Contains(l.uris, uri)
	}
	return slices.Contains(l.lists, method)
}

// notify sends a notification with the id of the subscription in its _meta.
func (l *listener) notify(note wire.Message) {
	meta := rawjson.Set(wire.Meta(note.Params), wire.MetaSubscription, json.RawMessage(l.round.id))
	note.Params = rawjson.Set(note.Params, "_meta", meta)
	l.round.send(note.Append(nil), false)
}

// listFilters are the fields of a filter that request list changes, with the capability
// that each needs.
var listFilters = []struct{ field, method, capability string }{
	{"toolsListChanged", wire.NoteToolsChanged, "tools"},
	{"promptsListChanged", wire.NotePromptsChanged, "prompts"},
	{"resourcesListChanged", wire.NoteResourcesChanged, "resources"},
}

// listen acknowledges the notifications it will send, and sends them until the client
// disconnects, the upstream is removed or the hub closes.
func (e *endpoint) listen(ctx context.Context, req *request) (json.RawMessage, error) {
	filter, ok := rawjson.Get(req.params, "notifications")
	if !ok || !rawjson.IsObject(filter) {
		return nil, wire.Errorf(wire.CodeInvalidParams, "subscriptions/listen needs notifications, an object")
	}
	a, err := e.describe(ctx)
	if err != nil {
		return nil, err
	}
	resp := req.current()
	if resp.jsonOnly {
		return nil, wire.Errorf(wire.CodeInvalidRequest, "subscriptions/listen needs a client that accepts text/event-stream")
	}
	l := &listener{round: resp, audience: audienceOf(ctx, displayOf(ctx))}
	if l.tasks, err = e.followTasks(ctx, req, filter); err != nil {
		return nil, err
	}
	agreed := e.acknowledge(ctx, l, a.capabilities, filter)
	releases, uris := e.acquireAll(ctx, a.capabilities, filter)
	defer func() {
		for _, release := range releases {
			release()
		}
	}()
	if l.uris = uris; len(uris) > 0 {
		raw, _ := json.Marshal(uris) // strings always encode
		agreed = rawjson.Set(agreed, "resourceSubscriptions", raw)
	}
	if l.tasks != nil {
		raw, _ := json.Marshal(l.tasks.ids) // strings always encode
		agreed = rawjson.Set(agreed, "taskIds", raw)
	}
	e.mu.Lock()
	l.notify(wire.Notification(wire.NoteListenAcknowledged, rawjson.Set(nil, "notifications", agreed)))
	e.listeners[l] = struct{}{}
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		delete(e.listeners, l)
		e.mu.Unlock()
	}()
	if err := e.awaitEnd(ctx, l); err != nil {
		return nil, err
	}
	return rawjson.Set(nil, "_meta", rawjson.Set(nil, wire.MetaSubscription, json.RawMessage(resp.id))), nil
}

// awaitEnd notifies a listener of its tasks until the hub closes or the upstream is removed; the
// error is that of ctx.
func (e *endpoint) awaitEnd(ctx context.Context, l *listener) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-e.hub.closing:
			return nil
		case <-e.gone:
			return nil
		case <-l.tasks.changed():
			e.notifyTasks(ctx, l)
		}
	}
}

// acknowledge sets the list changes that are requested and supported, and returns them in
// the form of the acknowledgement.
func (e *endpoint) acknowledge(ctx context.Context, l *listener, capabilities, filter json.RawMessage) json.RawMessage {
	agreed := json.RawMessage("{}")
	for _, f := range listFilters {
		offered, _ := rawjson.Get(capabilities, f.capability)
		if rawjson.GetBool(filter, f.field) && rawjson.GetBool(offered, "listChanged") {
			e.backend.recordList(ctx, f.method)
			l.lists = append(l.lists, f.method)
			agreed = rawjson.Set(agreed, f.field, json.RawMessage("true"))
		}
	}
	return agreed
}

// acquireAll subscribes to the resources of a filter and leaves out those that fail.
func (e *endpoint) acquireAll(ctx context.Context, capabilities, filter json.RawMessage) (releases []func(), uris []string) {
	offered, _ := rawjson.Get(capabilities, "resources")
	if !rawjson.GetBool(offered, "subscribe") {
		return nil, nil
	}
	raw, _ := rawjson.Get(filter, "resourceSubscriptions")
	items, _ := rawjson.Items(raw)
	for _, item := range items {
		uri, ok := rawjson.Text(item)
		if !ok || slices.Contains(uris, uri) {
			continue
		}
		release, err := e.backend.subscribe(ctx, uri)
		if err != nil {
			e.hub.log.DebugContext(ctx, "subscribe to resource", "uri", uri, "error", err)
			continue
		}
		releases, uris = append(releases, release), append(uris, uri)
	}
	return releases, uris
}

// followedTasks are the tasks whose changes a listener requested.
type followedTasks struct {
	ids  []string
	caps json.RawMessage // of the client
	wake chan struct{}

	mu         sync.Mutex
	changedIDs []string // tasks that changed and were not sent yet
}

// followTasks reads the tasks of a listener's filter and leaves out those that do not
// exist. The current state of each is sent first, so that earlier changes are not lost.
func (e *endpoint) followTasks(ctx context.Context, req *request, filter json.RawMessage) (*followedTasks, error) {
	raw, asked := rawjson.Get(filter, "taskIds")
	if !asked || rawjson.IsNull(raw) || !e.tasks.any() {
		return nil, nil // no tasks were requested
	}
	if !req.knowsTasks() {
		return nil, wire.NeedsTasks()
	}
	f := &followedTasks{ids: []string{}, caps: req.caps, wake: make(chan struct{}, 1)}
	items, _ := rawjson.Items(raw)
	for _, item := range items {
		id, ok := rawjson.Text(item)
		if !ok || slices.Contains(f.ids, id) {
			continue
		}
		if _, err := e.tasks.get(ctx, id); err == nil {
			f.ids = append(f.ids, id)
			f.note(id)
		}
	}
	return f, nil
}

// note schedules a notification of a task.
func (f *followedTasks) note(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.changedIDs, id) {
		f.changedIDs = append(f.changedIDs, id)
	}
	select {
	case f.wake <- struct{}{}:
	default: // it holds a token already
	}
}

// changed returns a channel that holds a token when a task has changed; nil without
// tasks.
func (f *followedTasks) changed() <-chan struct{} {
	if f == nil {
		return nil
	}
	return f.wake
}

func (f *followedTasks) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	ids := f.changedIDs
	f.changedIDs = nil
	return ids
}

// taskChanged passes a change of a task to the listeners that follow it.
func (e *endpoint) taskChanged(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for l := range e.listeners {
		if l.tasks != nil && slices.Contains(l.tasks.ids, id) {
			l.tasks.note(id)
		}
	}
}

// notifyTasks sends a listener the state of the tasks that changed.
func (e *endpoint) notifyTasks(ctx context.Context, l *listener) {
	for _, id := range l.tasks.take() {
		work, err := e.tasks.get(ctx, id)
		if err != nil {
			continue // it was removed meanwhile
		}
		raw, err := json.Marshal(viewTask(answerable(work, l.tasks.caps)))
		if err != nil {
			e.hub.log.WarnContext(ctx, "cannot send state of task", "task", id, "error", err)
			continue
		}
		l.notify(wire.Notification(wire.NoteTask, raw))
	}
}
