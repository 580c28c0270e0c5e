package hub_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// oneTask is a task that ends when the test says so.
type oneTask struct {
	mu     sync.Mutex
	task   tool.Task
	notify hub.Notify
}

func (o *oneTask) set(to func(*tool.Task)) {
	o.mu.Lock()
	to(&o.task)
	notify := o.notify
	o.mu.Unlock()
	notify(wire.NoteTask, rawjson.SetText(nil, "taskId", "t1"), nil)
}

func (o *oneTask) Task(_ context.Context, id string) (tool.Task, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if id != o.task.ID {
		return tool.Task{}, fault.New(fault.NotFound, "no task %q", id)
	}
	return o.task, nil
}

func (o *oneTask) WaitTask(ctx context.Context, id string, _ bool) (tool.Task, error) {
	return o.Task(ctx, id)
}

func (o *oneTask) ListTasks(ctx context.Context, _ string) ([]tool.Task, string, error) {
	task, err := o.Task(ctx, "t1")
	return []tool.Task{task}, "more", err
}

func (o *oneTask) CancelTask(ctx context.Context, id string) error {
	if _, err := o.Task(ctx, id); err != nil {
		return err
	}
	o.set(func(t *tool.Task) { t.State = tool.TaskCancelled })
	return nil
}

func (o *oneTask) AnswerTask(ctx context.Context, id string, answers map[string]json.RawMessage) error {
	_, err := o.Task(ctx, id)
	o.set(func(t *tool.Task) { t.Message = string(answers["q"]) })
	return err
}

func (o *oneTask) watch(notify hub.Notify) func() {
	o.notify = notify
	return func() {}
}

// withTask is a hub whose tool "work" begins the task, with a receipt unless it
// is called "strict".
func withTask(t *testing.T) (*oneTask, string) {
	t.Helper()
	at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	o := &oneTask{task: tool.Task{ID: "t1", State: tool.TaskWorking, Created: at, Updated: at}}
	receipt := json.RawMessage(`{"content":[{"type":"text","text":"receipt"}]}`)
	source := tools{
		"work": func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Raw: receipt, Task: "t1"}, nil
		},
		"strict": func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Task: "t1"}, nil },
	}
	opts := options(t, source)
	opts.Tasks, opts.Changes = o, o.watch
	_, url := serve(t, opts)
	return o, url
}

var _ hub.Tasks = (*oneTask)(nil)

// ask sends a request with these params and returns the answer as a string: the
// result, or "CODE" of the error.
func (c *client) ask(id, method, params string) string {
	c.t.Helper()
	if c.modern {
		params = strings.TrimSuffix(params, "}") + `,"_meta":{` + c.modernMeta() + `}}`
	}
	m := answer(c.t, c.post(c.t.Context(), `{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":`+params+`}`))
	if m.Error != nil {
		raw, _ := json.Marshal(m.Error.Code) // a number always encodes
		return string(raw)
	}
	return string(wire.StripProtocol(m.Result))
}

const (
	workingView = `"taskId":"t1","status":"working","createdAt":"2026-11-15T12:00:00.000Z","lastUpdatedAt":"2026-11-15T12:00:00.000Z","ttlMs":null,"pollIntervalMs":500`
	knowsTasks  = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`
)

func TestTasksOfTheModernEra(t *testing.T) {
	t.Parallel()
	o, url := withTask(t)
	plain := &client{t: t, url: url + "/mcp", modern: true}
	knows := &client{t: t, url: url + "/mcp", modern: true, caps: knowsTasks}
	for _, c := range []struct {
		of                   *client
		method, params, want string
	}{
		{plain, "tools/call", `{"name":"work"}`, `{"resultType":"complete","content":[{"type":"text","text":"receipt"}]}`},
		{plain, "tools/call", `{"name":"strict"}`, "-32021"},
		{plain, "tasks/get", `{"taskId":"t1"}`, "-32021"},
		{knows, "tools/call", `{"name":"work"}`, `{"resultType":"task",` + workingView + `}`},
		{knows, "tools/call", `{"name":"strict"}`, `{"resultType":"task",` + workingView + `}`},
		{knows, "tasks/get", `{"taskId":"t1"}`, `{"resultType":"complete",` + workingView + `}`},
		{knows, "tasks/get", `{"taskId":"t2"}`, "-32602"},
		{knows, "tasks/get", `{"taskId":7}`, "-32602"},
		{knows, "tasks/list", `{"x":1}`, "-32601"},
		{knows, "tasks/result", `{"taskId":"t1"}`, "-32601"},
		{knows, "tasks/update", `{"taskId":"t1","inputResponses":{"q":{"action":"accept"}}}`, `{"resultType":"complete"}`},
		{knows, "tasks/update", `{"taskId":"t1"}`, "-32602"},
		{knows, "tasks/cancel", `{"taskId":"t2"}`, "-32602"},
	} {
		if got := c.of.ask("1", c.method, c.params); got != c.want {
			t.Errorf("%s %s: %s\nwant %s", c.method, c.params, got, c.want)
		}
	}
	if got := knows.ask("2", "tasks/get", `{"taskId":"t1"}`); !strings.Contains(got, `"statusMessage":"{\"action\":\"accept\"}"`) {
		t.Errorf("after the answer: %s", got)
	}
	o.set(func(task *tool.Task) {
		task.State, task.TTL, task.Result = tool.TaskCompleted, time.Minute, textResult("done")
	})
	if got := knows.ask("3", "tasks/get", `{"taskId":"t1"}`); !strings.Contains(got, `"ttlMs":60000`) || !strings.Contains(got, `"text":"done"`) {
		t.Errorf("at the end: %s", got)
	}
}

// A listener receives the state of its task first, and then after each change.
func TestTaskChangesAreNotified(t *testing.T) {
	t.Parallel()
	o, url := withTask(t)
	plain := &client{t: t, url: url + "/mcp", modern: true}
	if m := answer(t, plain.post(t.Context(), plain.listen("1", `{"taskIds":["t1"]}`))); m.Error == nil || m.Error.Code != wire.CodeMissingCapability {
		t.Errorf("a client without tasks: %v", m.Error)
	}
	c := &client{t: t, url: url + "/mcp", modern: true, caps: knowsTasks}
	stream := events(t, c.post(t.Context(), c.listen("7", `{"taskIds":["t1","t2","t1"]}`)))
	if ack := next(t, stream); !strings.Contains(string(ack.Params), `"taskIds":["t1"]`) {
		t.Errorf("acknowledged %s", ack.Params)
	}
	expect := func(want string) {
		t.Helper()
		if m := next(t, stream); m.Method != wire.NoteTask || !strings.Contains(string(m.Params), want) || !strings.Contains(string(m.Params), `"io.modelcontextprotocol/subscriptionId":7`) {
			t.Errorf("received %s %s, want %s", m.Method, m.Params, want)
		}
	}
	expect(`"status":"working"`)
	o.set(func(task *tool.Task) { task.State, task.Result = tool.TaskCompleted, textResult("done") })
	expect(`"text":"done"`)
}

func TestTasksOfTheSessionsEra(t *testing.T) {
	t.Parallel()
	o, url := withTask(t)
	c := &client{t: t, url: url + "/mcp"}
	c.initialize(wire.Revision2511)
	const view = `"taskId":"t1","status":"working","createdAt":"2026-11-15T12:00:00.000Z","lastUpdatedAt":"2026-11-15T12:00:00.000Z","ttl":null,"pollInterval":500`
	for _, each := range []struct{ method, params, want string }{
		{"tools/call", `{"name":"work"}`, `{"content":[{"type":"text","text":"receipt"}]}`},
		{"tools/call", `{"name":"work","task":{"ttl":60000}}`, `{"task":{` + view + `}}`},
		{"tasks/get", `{"taskId":"t1"}`, `{` + view + `}`},
		{"tasks/get", `{"taskId":"t2"}`, "-32602"},
		{"tasks/list", `{}`, `{"tasks":[{` + view + `}],"nextCursor":"more"}`},
		{"tasks/update", `{"taskId":"t1","inputResponses":{}}`, "-32601"},
		{"tasks/cancel", `{"taskId":"t1"}`, `{` + strings.Replace(view, "working", "cancelled", 1) + `}`},
		{"tasks/cancel", `{"taskId":"t1"}`, "-32602"},
		{"tasks/result", `{"taskId":"t1"}`, "-32602"},
	} {
		if got := c.ask("1", each.method, each.params); got != each.want {
			t.Errorf("%s %s: %s\nwant %s", each.method, each.params, got, each.want)
		}
	}
	o.set(func(task *tool.Task) { task.State, task.Result = tool.TaskCompleted, textResult("done") })
	m := answer(t, c.post(t.Context(), `{"jsonrpc":"2.0","id":9,"method":"tasks/result","params":{"taskId":"t1"}}`))
	if got := string(m.Result); !strings.Contains(got, `"text":"done"`) || !strings.Contains(got, `"io.modelcontextprotocol/related-task":{"taskId":"t1"}`) {
		t.Errorf("the result: %s", got)
	}
	older := &client{t: t, url: url + "/mcp"}
	older.initialize("2025-06-18")
	if got := older.ask("1", "tasks/get", `{"taskId":"t1"}`); got != "-32601" {
		t.Errorf("an older revision: %s", got)
	}
}
