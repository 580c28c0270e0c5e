package hub

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
)

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
		return nil, nil //nolint:nilnil // no tasks were requested
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
