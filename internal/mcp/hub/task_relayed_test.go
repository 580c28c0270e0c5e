package hub_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// relayedTask is a task of the upstream up.
type relayedTask struct {
	*oneTask
	changed func(tool.Task)
}

func (r *relayedTask) Relays(id string) bool { return id == "t1" }

func (r *relayedTask) Watch(changed func(tool.Task)) (stop func()) {
	r.changed = changed
	return func() {}
}

var _ hub.RelayedTasks = (*relayedTask)(nil)

// taskingPeer is an upstream whose calls are tasks if the caller takes one.
type taskingPeer struct {
	scripted

	calls chan tool.Call
}

func (p *taskingPeer) Call(_ context.Context, call tool.Call, _ json.RawMessage) (tool.Result, error) {
	p.calls <- call
	if call.Task == nil {
		return textResult("awaited"), nil
	}
	return tool.Result{Raw: textResult("receipt").Raw, Task: "t1"}, nil
}

// relaying is a hub with that upstream.
func relaying(t *testing.T) (*relayedTask, *taskingPeer, string) {
	t.Helper()
	at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	r := &relayedTask{oneTask: &oneTask{task: tool.Task{ID: "t1", Space: "up", State: tool.TaskWorking, Created: at, Updated: at, Poll: time.Second}}}
	r.notify = func(string, json.RawMessage, func(principal.Principal) bool) {
		if task, err := r.Task(context.Background(), "t1"); err == nil {
			r.changed(task)
		}
	}
	p := &taskingPeer{calls: make(chan tool.Call, 10)}
	p.answers = map[string]func(json.RawMessage, *tool.Caller) (json.RawMessage, error){
		wire.MethodToolsList: func(json.RawMessage, *tool.Caller) (json.RawMessage, error) {
			return json.RawMessage(`{"tools":[{"name":"a","execution":{"taskSupport":"required","x":1}},{"name":"b"},{"name":"c","execution":{"taskSupport":"forbidden"}}]}`), nil
		},
	}
	opts := options(t, tools{})
	opts.Upstreams, opts.RelayedTasks = upstreams{"up": p, "other": &scripted{}}, r
	_, url := serve(t, opts)
	return r, p, url
}

// A client of the sessions era gets a task of an upstream if it asks for one, is notified
// of its changes and asked what it asks. It finds the task at that upstream only, and no
// tool requires a task.
func TestRelayedTaskOfTheSessionsEra(t *testing.T) {
	t.Parallel()
	r, p, url := relaying(t)
	c := &client{t: t, url: url + "/mcp/up", caps: `{"elicitation":{}}`}
	m := answer(t, c.post(t.Context(), initialize))
	if !strings.Contains(string(m.Result), `"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`) {
		t.Errorf("it describes itself as %s", m.Result)
	}
	c.initialize(wire.Revision2511)
	if got := c.ask("1", "tools/list", `{}`); got != `{"tools":[{"name":"a","execution":{"taskSupport":"optional","x":1}},{"name":"b"},{"name":"c","execution":{"taskSupport":"forbidden"}}]}` {
		t.Errorf("listed %s", got)
	}
	if got := c.ask("1", "tools/call", `{"name":"a"}`); !strings.Contains(got, "awaited") || (<-p.calls).Task != nil {
		t.Errorf("a call without a task: %s", got)
	}
	stream, err := httpjsontest.Client.Do(c.request(t.Context(), http.MethodGet, ""))
	if err != nil {
		t.Fatal(err)
	}
	notes := events(t, stream)
	if got := c.ask("1", "tools/call", `{"name":"a","task":{"ttl":60000}}`); !strings.Contains(got, `{"task":{"taskId":"t1","status":"working"`) || !strings.Contains(got, `"pollInterval":1000`) {
		t.Errorf("a call with a task: %s", got)
	}
	if call := <-p.calls; call.Task == nil || call.Task.TTL != time.Minute {
		t.Errorf("the upstream is asked for the task %+v", call.Task)
	}
	elsewhere := &client{t: t, url: url + "/mcp/other"}
	elsewhere.initialize(wire.Revision2511)
	if got := elsewhere.ask("1", "tasks/get", `{"taskId":"t1"}`); got != "-32602" {
		t.Errorf("at another upstream: %s", got)
	}
	r.set(func(task *tool.Task) {
		task.State = tool.TaskInputRequired
		task.Questions = map[string]json.RawMessage{"q": json.RawMessage(`{"method":"elicitation/create","params":{"message":"Really?"}}`)}
	})
	if note := next(t, notes); note.Method != wire.NoteTaskStatus || !strings.Contains(string(note.Params), `"taskId":"t1","status":"input_required"`) {
		t.Errorf("notified of %s %s", note.Method, note.Params)
	}
	result := events(t, c.post(t.Context(), `{"jsonrpc":"2.0","id":9,"method":"tasks/result","params":{"taskId":"t1"}}`))
	question := next(t, result)
	if question.Method != wire.MethodElicit || !strings.Contains(string(question.Params), `"message":"Really?"`) || !strings.Contains(string(question.Params), `"io.modelcontextprotocol/related-task":{"taskId":"t1"}`) {
		t.Errorf("asked %s %s", question.Method, question.Params)
	}
	c.post(t.Context(), `{"jsonrpc":"2.0","id":`+string(question.ID)+`,"result":{"action":"accept"}}`).Body.Close()
	if m := next(t, result); !strings.Contains(string(m.Result), `"text":"{\"action\":\"accept\"}"`) {
		t.Errorf("the result is %s, %v", m.Result, m.Error)
	}
}

// WaitTask waits until the task has ended or asks.
func (r *relayedTask) WaitTask(ctx context.Context, id string, orInput bool) (tool.Task, error) {
	task, err := r.Task(ctx, id)
	if !orInput && !task.State.Final() {
		<-ctx.Done()
		return task, context.Cause(ctx)
	}
	return task, err
}

// AnswerTask ends the task with the answer.
func (r *relayedTask) AnswerTask(_ context.Context, _ string, answers map[string]json.RawMessage) error {
	r.set(func(task *tool.Task) {
		task.State, task.Questions, task.Result = tool.TaskCompleted, nil, textResult(string(answers["q"]))
	})
	return nil
}
