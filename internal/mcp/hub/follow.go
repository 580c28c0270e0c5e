package hub

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// followed is the tasks that a listener wants to hear of.
type followed struct {
	ids  []string
	wake chan struct{}

	mu    sync.Mutex
	fresh []string // those that changed and were not told of yet
}

// follow reads from a listener's filter which tasks it wants to hear of, and
// leaves out those that do not exist. Each is told as it stands first: what
// happened before the listener came is not lost.
func (e *endpoint) follow(ctx context.Context, t *task, filter json.RawMessage) (*followed, error) {
	raw, asked := rawjson.Get(filter, "taskIds")
	tasks := e.hub.opts.Tasks
	if !asked || rawjson.IsNull(raw) || tasks == nil || e != e.hub.own {
		return nil, nil //nolint:nilnil // nothing is no error here
	}
	if !t.knowsTasks() {
		return nil, errNeedsTasks()
	}
	f := &followed{ids: []string{}, wake: make(chan struct{}, 1)}
	items, _ := rawjson.Items(raw)
	for _, item := range items {
		id, ok := rawjson.Text(item)
		if !ok || slices.Contains(f.ids, id) {
			continue
		}
		if _, err := tasks.Task(ctx, id); err == nil {
			f.ids = append(f.ids, id)
			f.note(id)
		}
	}
	return f, nil
}

// note has a task told of again.
func (f *followed) note(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Contains(f.fresh, id) {
		f.fresh = append(f.fresh, id)
	}
	select {
	case f.wake <- struct{}{}:
	default: // it is awake already
	}
}

// changed gets a value when there is something to tell; nobody followed is never
// heard of.
func (f *followed) changed() <-chan struct{} {
	if f == nil {
		return nil
	}
	return f.wake
}

func (f *followed) take() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	ids := f.fresh
	f.fresh = nil
	return ids
}

// taskChanged takes the news of a task to those who follow it.
func (e *endpoint) taskChanged(params json.RawMessage) {
	id, _ := rawjson.GetText(params, "taskId")
	e.mu.Lock()
	defer e.mu.Unlock()
	for l := range e.listeners {
		if l.tasks != nil && slices.Contains(l.tasks.ids, id) {
			l.tasks.note(id)
		}
	}
}

// tellTasks tells a listener how the tasks stand that changed.
func (e *endpoint) tellTasks(ctx context.Context, l *listener) {
	for _, id := range l.tasks.take() {
		work, err := e.hub.opts.Tasks.Task(ctx, id)
		if err != nil {
			continue // it was removed meanwhile
		}
		raw, err := json.Marshal(modernTask(work))
		if err != nil {
			e.hub.log.WarnContext(ctx, "task not told", "task", id, "error", err)
			continue
		}
		l.tell(wire.Notification(wire.NoteTask, raw))
	}
}
