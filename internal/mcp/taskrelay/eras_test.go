package taskrelay_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/taskrelay"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

// painter is a server whose tool paint is a task that asks for a color. It has one task.
type painter struct {
	mu     sync.Mutex
	task   tool.Task
	change chan struct{} // closed with each change
}

func newPainter() *painter { return &painter{change: make(chan struct{})} }

func (p *painter) set(change func(*tool.Task)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.task.State.Final() {
		return
	}
	change(&p.task)
	p.task.Updated = time.Now()
	close(p.change)
	p.change = make(chan struct{})
}

func (p *painter) look() (tool.Task, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.task, p.change
}

func (p *painter) Tools(context.Context) ([]tool.Info, error) {
	return []tool.Info{{Ref: tool.Ref{Name: "paint"}, Input: json.RawMessage(`{"type":"object"}`),
		Raw: json.RawMessage(`{"name":"paint","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}`)}}, nil
}

func (p *painter) Call(context.Context, tool.Call) (tool.Result, error) {
	now := time.Now()
	p.set(func(task *tool.Task) {
		*task = tool.Task{ID: "remote", State: tool.TaskInputRequired, Message: "mixing", Created: now, TTL: time.Hour, Poll: 100 * time.Millisecond,
			Questions: map[string]json.RawMessage{"color": json.RawMessage(`{"method":"elicitation/create","params":{"message":"Which color?","requestedSchema":{"type":"object","properties":{"color":{"type":"string"}}}}}`)}}
	})
	return tool.Result{Task: "remote"}, nil
}

func (p *painter) Task(_ context.Context, id string) (tool.Task, error) {
	task, _ := p.look()
	if id != task.ID {
		return tool.Task{}, fault.New(fault.NotFound, "no task %q", id)
	}
	return task, nil
}

func (p *painter) WaitTask(ctx context.Context, _ string, orInput bool) (tool.Task, error) {
	for {
		task, change := p.look()
		if task.State.Final() || orInput && task.State == tool.TaskInputRequired {
			return task, nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return task, context.Cause(ctx)
		}
	}
}

func (p *painter) ListTasks(context.Context, string) ([]tool.Task, string, error) {
	return nil, "", nil
}

func (p *painter) CancelTask(context.Context, string) error {
	p.set(func(task *tool.Task) { task.State = tool.TaskCancelled })
	return nil
}

func (p *painter) AnswerTask(_ context.Context, _ string, answers map[string]json.RawMessage) error {
	content, _ := rawjson.Get(answers["color"], "content")
	color, _ := rawjson.GetText(content, "color")
	p.set(func(task *tool.Task) {
		end := completed("painted " + color)
		task.State, task.Result, task.Questions = end.State, end.Result, nil
	})
	return nil
}

// serve serves a hub and returns its URL.
func serve(t *testing.T, o hub.Options) string {
	t.Helper()
	o.Name, o.Version = "test", "1"
	h := hub.New(o)
	site := httptest.NewServer(h.Handler())
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // so that streams end at once
		_ = h.Close(ctx)
		site.Close()
	})
	return site.URL
}

type peers struct{ *upstream.Manager }

func (p peers) Peer(_ context.Context, namespace string) (hub.Peer, bool) {
	return p.Manager.Peer(namespace)
}

func (peers) Owner(context.Context, string) string { return "" }

// connect makes a manager with one server.
func connect(t *testing.T, spec upstream.Spec, o upstream.Options) *upstream.Manager {
	t.Helper()
	m := upstream.New(o)
	t.Cleanup(m.Close)
	spec.Wait = duration.Duration(clocktest.Timeout)
	if err := m.Add(spec); err != nil {
		t.Fatal(err)
	}
	return m
}

// handle is a TaskKeeper that returns the server's own id.
type handle struct{}

func (handle) KeepTask(_ context.Context, task upstream.StartedTask) (string, error) {
	return task.Task.ID, nil
}

// TestTasksOfBothEras relays tasks between clients and servers of all eras: a client that
// takes tasks follows one, is asked for its question and gets the result; a client that
// does not gets the result of its call; a task that is cancelled is cancelled at the
// server.
func TestTasksOfBothEras(t *testing.T) {
	t.Parallel()
	for _, below := range []string{upstream.ProtocolModern, upstream.ProtocolLegacy} {
		for _, above := range []string{upstream.ProtocolModern, upstream.ProtocolLegacy} {
			t.Run(above+" client, "+below+" server", func(t *testing.T) {
				t.Parallel()
				relayTasks(t, above, below)
			})
		}
	}
}

func relayTasks(t *testing.T, above, below string) {
	p := newPainter()
	server := serve(t, hub.Options{Tools: p, Tasks: p})
	relay, err := taskrelay.Open(t.Context(), dbtest.Open(t, dbtest.SQLite(t)), taskrelay.Options{Node: "a"})
	if err != nil {
		t.Fatal(err)
	}
	manager := connect(t, upstream.Spec{Name: "up", Settings: upstream.Settings{URL: server + "/mcp", Protocol: below}}, upstream.Options{Tasks: relay})
	relay.Start(manager)
	t.Cleanup(relay.Close)
	front := serve(t, hub.Options{Tools: p, RelayedTasks: relay, Upstreams: peers{manager}})
	client := connect(t, upstream.Spec{Name: "front", Settings: upstream.Settings{URL: front + "/mcp/up", Protocol: above}}, upstream.Options{Tasks: handle{}})
	caller := &tool.Caller{
		Capabilities: json.RawMessage(`{"elicitation":{}}`),
		Ask: func(_ context.Context, q []tool.Question) ([]json.RawMessage, error) {
			if len(q) != 1 || !strings.Contains(string(q[0].Params), "Which color?") {
				return nil, errors.New("it asks something else")
			}
			return []json.RawMessage{json.RawMessage(`{"action":"accept","content":{"color":"blue"}}`)}, nil
		},
	}
	call := tool.Call{Ref: tool.Ref{Space: "front", Name: "paint"}, Caller: caller}
	if _, err := client.FollowTask(t.Context(), "front", "remote", caller, func(tool.Task) {}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("the server's own id: %v", err)
	}
	result, err := client.Call(t.Context(), call)
	if err != nil || !strings.Contains(string(result.Raw), "painted blue") {
		t.Fatalf("the call was answered with %s, %v", result.Raw, err)
	}
	call.Task = &tool.TaskRequest{}
	p.reset()
	result, err = client.Call(t.Context(), call)
	if err != nil || !strings.HasPrefix(result.Task, "task-") {
		t.Fatalf("the call was answered with %+v, %v", result, err)
	}
	end, err := client.FollowTask(t.Context(), "front", result.Task, caller, func(tool.Task) {})
	if err != nil || end.State != tool.TaskCompleted || !strings.Contains(string(end.Result.Raw), "painted blue") {
		t.Errorf("the task ended as %+v with %s, %v", end, end.Result.Raw, err)
	}
	p.reset()
	if result, err = client.Call(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	if err := client.CancelTask(t.Context(), "front", result.Task); err != nil {
		t.Error(err)
	}
	clocktest.Await(t, func() bool { task, _ := p.look(); return task.State == tool.TaskCancelled })
}

// reset forgets the task, so that another one can begin.
func (p *painter) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.task = tool.Task{}
}
