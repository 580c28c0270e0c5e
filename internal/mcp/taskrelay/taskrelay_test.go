package taskrelay_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/taskrelay"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// server is an upstream with tasks that do what the test says.
type server struct {
	mu        sync.Mutex
	tasks     map[string]func(ctx context.Context, caller *tool.Caller, changed func(tool.Task)) (tool.Task, error)
	cancelled chan string
	cut       chan struct{} // if set, it does not answer when a task is cancelled, and this is closed
}

func newServer() *server {
	return &server{
		tasks:     map[string]func(context.Context, *tool.Caller, func(tool.Task)) (tool.Task, error){},
		cancelled: make(chan string, 10),
	}
}

func (s *server) set(id string, do func(ctx context.Context, caller *tool.Caller, changed func(tool.Task)) (tool.Task, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks[id] = do
}

func (s *server) FollowTask(ctx context.Context, _, id string, caller *tool.Caller, changed func(tool.Task)) (tool.Task, error) {
	s.mu.Lock()
	do := s.tasks[id]
	s.mu.Unlock()
	if do == nil {
		return tool.Task{}, fault.New(fault.NotFound, "docs no longer has this task").WithHint("make the call again")
	}
	return do(ctx, caller, changed)
}

func (s *server) CancelTask(ctx context.Context, _, id string) error {
	if s.cut != nil {
		close(s.cut)
		<-ctx.Done()
		return context.Cause(ctx)
	}
	s.cancelled <- id
	return nil
}

// forever is a task that does not end.
func forever(ctx context.Context, _ *tool.Caller, _ func(tool.Task)) (tool.Task, error) {
	<-ctx.Done()
	return tool.Task{}, context.Cause(ctx)
}

// completed is a task that has ended with a text.
func completed(text string) tool.Task {
	result, _ := tool.Output(text, nil) // a text always encodes
	return tool.Task{State: tool.TaskCompleted, Result: result}
}

// start opens and starts the relay of a node.
func start(t *testing.T, d *db.DB, node string, s *server) *taskrelay.Relay {
	t.Helper()
	r, err := taskrelay.Open(t.Context(), d, taskrelay.Options{Node: node})
	if err != nil {
		t.Fatal(err)
	}
	r.Start(s)
	t.Cleanup(r.Close)
	return r
}

// as is a context of a user.
func as(t *testing.T, name string) context.Context {
	t.Helper()
	return principal.With(t.Context(), principal.Principal{ID: "key:" + name, Name: name, Scopes: []principal.Scope{principal.MCP}})
}

// keep stores a task for a user and returns its id.
func keep(t *testing.T, r *taskrelay.Relay, who, remote string, ttl time.Duration) string {
	t.Helper()
	id, err := r.KeepTask(as(t, who), upstream.StartedTask{
		Ref: tool.Ref{Space: "docs", Name: "index"}, Task: tool.Task{ID: remote, TTL: ttl, Poll: time.Second, Message: "begun"},
		Caller: &tool.Caller{Capabilities: json.RawMessage(`{"elicitation":{}}`), Ask: func(context.Context, []tool.Question) ([]json.RawMessage, error) {
			return nil, errors.New("the call is over")
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func wait(t *testing.T, r *taskrelay.Relay, who, id string, orInput bool) tool.Task {
	t.Helper()
	task, err := r.WaitTask(as(t, who), id, orInput)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func TestTaskIsFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newServer()
		reported, end := make(chan struct{}), make(chan struct{})
		s.set("1", func(_ context.Context, _ *tool.Caller, changed func(tool.Task)) (tool.Task, error) {
			changed(tool.Task{State: tool.TaskWorking, Message: "half"})
			close(reported)
			<-end
			return completed("done"), nil
		})
		r := start(t, d, "a", s)
		seen := make(chan tool.Task, 100)
		defer r.Watch(func(task tool.Task) { seen <- task })()
		id := keep(t, r, "ann", "1", time.Hour)
		<-reported
		task, err := r.Task(as(t, "ann"), id)
		if err != nil || task.State != tool.TaskWorking || task.Message != "half" || task.Space != "docs" || task.TTL != time.Hour || task.Poll != time.Second {
			t.Errorf("while it works: %+v, %v", task, err)
		}
		if !r.Relays(id) || len(id) < 26 {
			t.Errorf("id %q", id)
		}
		close(end)
		if task := wait(t, r, "ann", id, false); task.State != tool.TaskCompleted || !strings.Contains(string(task.Result.Raw), "done") {
			t.Errorf("at the end: %+v", task)
		}
		for task := range seen { // a watcher sees the end too
			if task.State == tool.TaskCompleted && task.ID == id {
				break
			}
		}
	})
}

func TestTaskBelongsToItsPrincipal(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.set("1", forever)
	r := start(t, dbtest.Open(t, dbtest.SQLite(t)), "a", s)
	id := keep(t, r, "ann", "1", time.Hour)
	for what, err := range map[string]error{
		"see":    func() error { _, err := r.Task(as(t, "bob"), id); return err }(),
		"await":  func() error { _, err := r.WaitTask(as(t, "bob"), id, true); return err }(),
		"answer": r.AnswerTask(as(t, "bob"), id, nil),
		"cancel": r.CancelTask(as(t, "bob"), id),
	} {
		if fault.CodeOf(err) != fault.NotFound {
			t.Errorf("another user may %s it: %v", what, err)
		}
	}
	list := func(ctx context.Context) []tool.Task {
		all, next, err := r.ListTasks(ctx, "")
		if err != nil || next != "" {
			t.Error(next, err)
		}
		return all
	}
	if bob, ann, admin := list(as(t, "bob")), list(as(t, "ann")), list(t.Context()); len(bob) != 0 || len(ann) != 1 || len(admin) != 1 {
		t.Errorf("lists of %d, %d and %d tasks", len(bob), len(ann), len(admin))
	}
	narrow := principal.With(t.Context(), principal.Principal{ID: "key:ann", Name: "ann", Scopes: []principal.Scope{principal.MCP}, Namespaces: []string{"other"}})
	if _, err := r.Task(narrow, id); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("its user may no longer see the namespace: %v", err)
	}
}

func TestListIsPaged(t *testing.T) {
	t.Parallel()
	s := newServer()
	r := start(t, dbtest.Open(t, dbtest.SQLite(t)), "a", s)
	ids := map[string]bool{}
	for range 230 {
		ids[keep(t, r, "ann", "gone", time.Hour)] = true
	}
	cursor, pages := "", 0
	for {
		list, next, err := r.ListTasks(as(t, "ann"), cursor)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range list {
			if !ids[task.ID] {
				t.Errorf("task %s is listed twice, or was never made", task.ID)
			}
			delete(ids, task.ID)
		}
		if pages++; next == "" {
			break
		}
		cursor = next
	}
	if len(ids) > 0 || pages != 3 {
		t.Errorf("%d tasks are missing in %d pages", len(ids), pages)
	}
	if _, _, err := r.ListTasks(as(t, "ann"), "x"); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("a wrong cursor: %v", err)
	}
}

// asking is a task that asks two questions, one after the other, and ends with the
// answers.
func asking(ctx context.Context, caller *tool.Caller, _ func(tool.Task)) (tool.Task, error) {
	text := ""
	for _, key := range []string{"color", ""} {
		replies, err := caller.Ask(ctx, []tool.Question{{Key: key, Method: tool.MethodElicit, Params: json.RawMessage(`{"message":"Which?"}`)}})
		if err != nil {
			return tool.Task{}, err
		}
		text += string(replies[0])
	}
	return completed(text), nil
}

// Another node answers what a task asks, and delivers its result.
func TestAnotherNodeAnswers(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newServer()
		s.set("1", asking)
		a, b := start(t, d, "a", s), start(t, d, "b", newServer())
		id := keep(t, a, "ann", "1", time.Hour)
		for _, want := range []string{"color", "elicitation-2"} {
			task := wait(t, b, "ann", id, true)
			question := task.Questions[want]
			if task.State != tool.TaskInputRequired || len(task.Questions) != 1 || string(question) != `{"method":"elicitation/create","params":{"message":"Which?"}}` {
				t.Fatalf("it asks %s, want %s", task.Questions, want)
			}
			answers := map[string]json.RawMessage{want: json.RawMessage(`{"action":"accept","n":"` + want + `"}`), "other": json.RawMessage(`{}`)}
			if err := b.AnswerTask(as(t, "ann"), id, map[string]json.RawMessage{want: json.RawMessage(`7`)}); err != nil {
				t.Error(err) // no answer, so it is ignored
			}
			if err := b.AnswerTask(as(t, "ann"), id, answers); err != nil {
				t.Error(err)
			}
		}
		task := wait(t, b, "ann", id, true)
		if text := string(task.Result.Raw); task.State != tool.TaskCompleted || !strings.Contains(text, "color") || !strings.Contains(text, "elicitation-2") {
			t.Errorf("it ended as %+v with %s", task, text)
		}
	})
}

// A task that is cancelled at one node is cancelled at the upstream by the node that
// follows it.
func TestAnotherNodeCancels(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newServer()
		s.set("1", forever)
		a, b := start(t, d, "a", s), start(t, d, "b", newServer())
		id := keep(t, a, "ann", "1", time.Hour)
		if err := b.CancelTask(as(t, "ann"), id); err != nil {
			t.Fatal(err)
		}
		if got := <-s.cancelled; got != "1" {
			t.Errorf("cancelled %q at the upstream", got)
		}
		if task := wait(t, a, "ann", id, false); task.State != tool.TaskCancelled {
			t.Errorf("it is %s", task.State)
		}
	})
}

// The next process follows the tasks of one that has ended, and says so if the upstream
// has lost them.
func TestTasksSurviveARestart(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := newServer()
		s.cut = make(chan struct{})
		for _, id := range []string{"kept", "lost", "cancelled", "cut"} {
			s.set(id, forever)
		}
		first, err := taskrelay.Open(t.Context(), d, taskrelay.Options{Node: "first"})
		if err != nil {
			t.Fatal(err)
		}
		first.Start(s)
		kept, lost, cancelled := keep(t, first, "ann", "kept", 0), keep(t, first, "ann", "lost", time.Hour), keep(t, first, "ann", "cancelled", time.Hour)
		if err := first.CancelTask(as(t, "ann"), keep(t, first, "ann", "cut", time.Hour)); err != nil {
			t.Fatal(err)
		}
		<-s.cut
		first.Close()
		if err := first.CancelTask(as(t, "ann"), cancelled); err != nil { // too late for the first to tell the upstream
			t.Fatal(err)
		}
		after := newServer()
		after.set("kept", func(context.Context, *tool.Caller, func(tool.Task)) (tool.Task, error) {
			return completed("still there"), nil
		})
		next := start(t, d, "next", after)
		owners, err := next.Owners(t.Context())
		if err != nil || len(owners) != 1 || owners[0] != "first" {
			t.Errorf("tasks belong to %q, %v", owners, err)
		}
		if err := next.TakeOver(t.Context(), owners); err != nil {
			t.Fatal(err)
		}
		if task := wait(t, next, "ann", kept, false); task.State != tool.TaskCompleted || !strings.Contains(string(task.Result.Raw), "still there") {
			t.Errorf("the task ended as %+v", task)
		}
		if task := wait(t, next, "ann", lost, false); task.State != tool.TaskFailed || task.Err == nil || !strings.Contains(task.Message, "no longer has this task") {
			t.Errorf("the lost task ended as %+v", task)
		}
		clocktest.Await(t, func() bool { return len(after.cancelled) >= 2 }, func() string { return "a task was not cancelled at the upstream" })
		if got := []string{<-after.cancelled, <-after.cancelled}; !slices.Contains(got, "cancelled") || !slices.Contains(got, "cut") {
			t.Errorf("cancelled %q at the upstream", got)
		}
	})
}

// A node that was taken for dead stops following what another node follows now.
func TestRecheck(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	s, other := newServer(), newServer()
	begun, stopped := make(chan struct{}), make(chan struct{})
	s.set("1", func(ctx context.Context, caller *tool.Caller, changed func(tool.Task)) (tool.Task, error) {
		close(begun)
		defer close(stopped)
		return forever(ctx, caller, changed)
	})
	other.set("1", func(context.Context, *tool.Caller, func(tool.Task)) (tool.Task, error) { return completed("by b"), nil })
	a, b := start(t, d, "a", s), start(t, d, "b", other)
	id := keep(t, a, "ann", "1", time.Hour)
	<-begun
	if err := a.Recheck(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.TakeOver(t.Context(), []string{"a"}); err != nil {
		t.Fatal(err)
	}
	if err := a.Recheck(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-stopped
	if task := wait(t, b, "ann", id, false); !strings.Contains(string(task.Result.Raw), "by b") {
		t.Errorf("it ended as %+v", task)
	}
}

// While an upstream cannot be reached, its tasks are not given up.
func TestUnreachableUpstream(t *testing.T) {
	t.Parallel()
	s := newServer()
	var tries atomic.Int64
	s.set("1", func(context.Context, *tool.Caller, func(tool.Task)) (tool.Task, error) {
		if tries.Add(1) < 3 {
			return tool.Task{}, fault.New(fault.Unavailable, "docs is down")
		}
		return tool.Task{State: tool.TaskFailed, Message: "broken", Err: fault.New(fault.Upstream, "broken on purpose")}, nil
	})
	r := start(t, dbtest.Open(t, dbtest.SQLite(t)), "a", s)
	task := wait(t, r, "ann", keep(t, r, "ann", "1", time.Hour), false)
	if task.State != tool.TaskFailed || task.Err == nil || !strings.Contains(task.Err.Error(), "broken on purpose") || tries.Load() != 3 {
		t.Errorf("after %d tries it ended as %+v", tries.Load(), task)
	}
}

// A task is not found after its time.
func TestTaskExpires(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.set("1", forever)
	r := start(t, dbtest.Open(t, dbtest.SQLite(t)), "a", s)
	id := keep(t, r, "ann", "1", 30*time.Millisecond)
	if _, err := r.WaitTask(as(t, "ann"), id, false); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("after its time: %v", err)
	}
}

// What happens while a node receives no notifications is not lost: its watchers are told of
// the end of a task, and a task that was cancelled is cancelled at the upstream.
func TestMissedNotificationsAreMadeUp(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		deaf, err := taskrelay.Open(t.Context(), d, taskrelay.Options{Node: "deaf"})
		if err != nil {
			t.Fatal(err)
		}
		seen := make(chan tool.Task, 100)
		defer deaf.Watch(func(task tool.Task) { seen <- task })()
		s := newServer()
		s.set("1", func(context.Context, *tool.Caller, func(tool.Task)) (tool.Task, error) { return completed("done"), nil })
		other := start(t, d, "other", s)
		ended, cancelled := keep(t, other, "ann", "1", time.Hour), keep(t, deaf, "ann", "2", time.Hour)
		wait(t, other, "ann", ended, false)
		if err := other.CancelTask(as(t, "ann"), cancelled); err != nil {
			t.Fatal(err)
		}
		mine := newServer()
		deaf.Start(mine)
		t.Cleanup(deaf.Close)
		for task := range seen {
			if task.ID == ended && task.State == tool.TaskCompleted {
				break
			}
		}
		if got := <-mine.cancelled; got != "2" {
			t.Errorf("cancelled %q at the upstream", got)
		}
	})
}
