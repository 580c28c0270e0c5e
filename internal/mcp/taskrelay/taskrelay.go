// Package taskrelay keeps tasks of upstreams for their callers. A call that an upstream
// answers with a task gets an id of ours. The node that made the call follows the task at
// the upstream and stores what becomes of it, so that every node can tell its state and
// deliver its result, also after a restart. Answers to the task's questions and requests
// to cancel it are stored too; notifications tell the node that follows it to read them.
//
// A task belongs to the principal who made the call. When a node ends, another one, or the
// next process on the same file, follows its tasks, as far as the upstream still has them.
package taskrelay

import (
	"context"
	"crypto/rand"
	"embed"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/personal"
)

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// topic is the notification channel of tasks; the payload is the id of one that changed.
const topic = "tasks"

// prefix begins the id of every task.
const prefix = "task-"

// Options configure a Relay.
type Options struct {
	Node string       // id of this node
	Log  *slog.Logger // nil discards
}

// Upstreams are the servers whose tasks are relayed.
type Upstreams interface {
	// FollowTask waits for the end of a task; see upstream.Manager.
	FollowTask(ctx context.Context, namespace, id string, caller *tool.Caller, changed func(tool.Task)) (tool.Task, error)
	CancelTask(ctx context.Context, namespace, id string) error
}

// Relay relays tasks. It is safe for concurrent use.
type Relay struct {
	db        *db.DB
	options   Options
	upstreams Upstreams // set by Start
	stop      context.CancelFunc
	work      sync.WaitGroup
	wake      chan struct{} // holds a token while changed is not empty

	mu        sync.Mutex
	spawn     func(f func(context.Context)) // runs f in the background; nil unless the relay is started
	changed   []string                      // tasks that watchers and followers have not been told of
	missed    bool                          // there may be more of them
	since     time.Time                     // last change that they were told of, by the clock of the database
	following map[string]context.CancelCauseFunc
	waiting   map[string][]chan struct{} // closed when a task changes
	watchers  map[int]func(tool.Task)
	watched   int // watchers so far
}

var (
	_ upstream.TaskKeeper = (*Relay)(nil)
	_ hub.RelayedTasks    = (*Relay)(nil)
	_ Upstreams           = (*upstream.Manager)(nil)
)

// Open creates or updates the tables. Start starts the relay.
func Open(ctx context.Context, database *db.DB, o Options) (*Relay, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	r := &Relay{
		db: database, options: o, wake: make(chan struct{}, 1), stop: func() {},
		following: map[string]context.CancelCauseFunc{}, waiting: map[string][]chan struct{}{}, watchers: map[int]func(tool.Task){},
	}
	if err := database.Migrate(ctx, "task", Migrations); err != nil {
		return nil, err
	}
	return r, database.Read(ctx, func(tx *db.Tx) (err error) {
		r.since, err = tx.Now(ctx)
		return err
	})
}

// Hub is the relay for the hub; nil if there is no relay.
func (r *Relay) Hub() hub.RelayedTasks {
	if r == nil {
		return nil // not a typed nil
	}
	return r
}

// Keeper is the relay for the connections to upstreams; nil if there is no relay.
func (r *Relay) Keeper() upstream.TaskKeeper {
	if r == nil {
		return nil // not a typed nil
	}
	return r
}

// Start begins to follow tasks. Close ends it. Without a relay both do nothing.
func (r *Relay) Start(upstreams Upstreams) {
	if r == nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	r.mu.Lock()
	r.upstreams, r.stop = upstreams, stop
	r.spawn = func(f func(context.Context)) { r.work.Go(func() { f(ctx) }) }
	r.mu.Unlock()
	r.work.Go(func() {
		_ = r.db.Listen(ctx, topic, r.receive) // it ends with ctx
	})
	r.work.Go(func() { r.dispatch(ctx) })
	r.work.Go(func() { r.deleteExpired(ctx) })
}

// Close stops following tasks. They continue at their upstreams, and another node or
// process can follow them.
func (r *Relay) Close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.spawn = nil
	stop := r.stop
	r.mu.Unlock()
	stop()
	r.work.Wait()
}

// receive handles a notification.
func (r *Relay) receive(n db.Notification) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n.Missed {
		r.missed = true
		for id := range r.waiting {
			r.note(id)
		}
		r.signal()
		return
	}
	r.note(n.Payload)
}

// note wakes those who wait for a change of a task and schedules the rest; r.mu is held.
func (r *Relay) note(id string) {
	for _, woke := range r.waiting[id] {
		close(woke)
	}
	delete(r.waiting, id)
	if !slices.Contains(r.changed, id) {
		r.changed = append(r.changed, id)
	}
	r.signal()
}

// signal wakes dispatch.
func (r *Relay) signal() {
	select {
	case r.wake <- struct{}{}:
	default: // it holds a token already
	}
}

// dispatch tells watchers of changed tasks, and has cancelled ones cancelled. That must not
// be lost, so it waits for an unreachable database.
func (r *Relay) dispatch(ctx context.Context) {
	ctx, _ = db.WaitForDatabase(ctx)
	for {
		select {
		case <-r.wake:
		case <-ctx.Done():
			return
		}
		for _, id := range r.takeChanged(ctx) {
			t, err := r.load(ctx, id)
			if err != nil {
				continue // it has expired
			}
			if t.cancelled && t.node == r.options.Node {
				r.work.Go(func() { r.forwardCancel(ctx, t) })
			}
			r.tellWatchers(t.view())
			r.mu.Lock()
			if t.updated.After(r.since) {
				r.since = t.updated
			}
			r.mu.Unlock()
		}
	}
}

// takeChanged returns the tasks that have changed. If notifications may have been missed, it
// looks for them.
func (r *Relay) takeChanged(ctx context.Context) []string {
	r.mu.Lock()
	ids, missed, since := r.changed, r.missed, r.since
	r.changed, r.missed = nil, false
	r.mu.Unlock()
	if !missed {
		return ids
	}
	more, err := r.changesSince(ctx, since)
	if err != nil && ctx.Err() == nil {
		r.options.Log.WarnContext(ctx, "changed tasks not found", "error", err)
	}
	for _, id := range more {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (r *Relay) tellWatchers(task tool.Task) {
	r.mu.Lock()
	var watchers []func(tool.Task)
	for _, watch := range r.watchers {
		watchers = append(watchers, watch)
	}
	r.mu.Unlock()
	for _, watch := range watchers {
		watch(task)
	}
}

// Watch calls changed with every task that changes, on this node or another, until stop.
func (r *Relay) Watch(changed func(tool.Task)) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watched++
	id := r.watched
	r.watchers[id] = changed
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, id)
	}
}

// change returns a channel that is closed when a task changes. forget is called when
// nobody waits for it any more.
func (r *Relay) change(id string) (woke chan struct{}, forget func()) {
	woke = make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting[id] = append(r.waiting[id], woke)
	return woke, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		left := slices.DeleteFunc(r.waiting[id], func(c chan struct{}) bool { return c == woke })
		if r.waiting[id] = left; len(left) == 0 {
			delete(r.waiting, id)
		}
	}
}

// await reads a task again with every change until it is as wanted.
func (r *Relay) await(ctx context.Context, read func(context.Context) (task, error), wanted func(*task) bool, id string) (task, error) {
	for {
		woke, forget := r.change(id)
		t, err := read(ctx)
		if err != nil || wanted(&t) {
			forget()
			return t, err
		}
		select {
		case <-woke:
		case <-time.After(min(rereadInterval, time.Until(t.expires)+time.Millisecond)): // a notification may have been lost
			forget()
		case <-ctx.Done():
			forget()
			return t, context.Cause(ctx)
		}
	}
}

// rereadInterval is how often a task that has not expired is read without a notification.
const rereadInterval = 5 * time.Second

// KeepTask stores a task that a call has started, and follows it.
func (r *Relay) KeepTask(ctx context.Context, s upstream.StartedTask) (id string, err error) {
	t := task{
		id: prefix + strings.ToLower(rand.Text()), owner: principal.Of(ctx).ID, account: principal.Of(ctx).LoginOwner(), space: s.Ref.Space, tool: s.Ref.Name, remote: s.Task.ID,
		node: r.options.Node, state: tool.TaskWorking, message: s.Task.Message, poll: s.Task.Poll, ttl: s.Task.TTL,
	}
	if s.Caller == nil || s.Caller.Ask == nil {
		t.caps = "{}"
	} else {
		t.caps = string(s.Caller.Capabilities)
	}
	if err := r.insert(context.WithoutCancel(ctx), t); err != nil {
		return "", fault.Wrap(fault.Internal, err, "store the task of %s", s.Ref)
	}
	r.follow(t.id)
	return t.id, nil
}

// Relays tells whether an id is that of a task of an upstream.
func (r *Relay) Relays(id string) bool { return strings.HasPrefix(id, prefix) }

// Task returns the current state of a task.
func (r *Relay) Task(ctx context.Context, id string) (tool.Task, error) {
	t, err := r.visible(ctx, id)
	return t.view(), err
}

// visible returns a task that the principal of ctx may see.
func (r *Relay) visible(ctx context.Context, id string) (task, error) {
	t, err := r.load(ctx, id)
	if err != nil {
		return task{}, err
	}
	if who := principal.Of(ctx); !who.Owns(t.owner) || !who.CanSee(t.space, "") {
		return task{}, errNoTask(id)
	}
	return t, nil
}

func errNoTask(id string) error {
	return fault.New(fault.NotFound, "no task %q", id).WithHint("it does not exist, has expired, or belongs to another user")
}

// WaitTask waits until a task has ended or, with orInput, asks for input.
func (r *Relay) WaitTask(ctx context.Context, id string, orInput bool) (tool.Task, error) {
	t, err := r.await(ctx,
		func(ctx context.Context) (task, error) { return r.visible(ctx, id) },
		func(t *task) bool { return t.state.Final() || orInput && t.state == tool.TaskInputRequired }, id)
	return t.view(), err
}

// CancelTask cancels a task at once for its clients; the upstream is told afterwards.
func (r *Relay) CancelTask(ctx context.Context, id string) error {
	if _, err := r.visible(ctx, id); err != nil {
		return err
	}
	return r.update(ctx, id, func(t *task) error {
		t.state, t.cancelled, t.questions = tool.TaskCancelled, true, nil
		return nil
	})
}

// Personal lists the tables with tasks of upstreams that a person began.
func Personal() []personal.Table {
	return []personal.Table{
		{Name: "relayed_tasks", Where: "OWNER(owner)"},
	}
}
