package backends_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/zmq/hootproto"
	"github.com/luanette/luanette/internal/zmq/hootserver"
)

// A client on libzmq uses both encodings, broadcasts and cancellation.
func TestPythonClient(t *testing.T) {
	t.Parallel()
	needPython(t)
	source := newAnswers()
	source["wait"] = func(ctx context.Context, call tool.Call) (tool.Result, error) {
		for n := 1.0; ; n++ {
			call.Caller.Progress(tool.Progress{Progress: n, Total: 1000, Message: "waiting"})
			select {
			case <-ctx.Done():
				return tool.Result{}, ctx.Err()
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	b := serveSource(t, hootserver.Options{Source: withWait{source}})
	cmd := exec.CommandContext(t.Context(), python, "python/client.py", b.Addr())
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var received struct {
		Ready          hootproto.Catalog
		Heartbeat      int
		JSON, Msgpack  json.RawMessage
		Fault, Missing hootproto.Outcome
		Progress       hootproto.Progress
		Ours           bool `json:"progress_is_ours"`
		Cancel         hootproto.Outcome
		Cancelled      hootproto.Outcome
	}
	if err := json.Unmarshal(out, &received); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if received.Ready.Protocol != hootproto.Hoot01 || len(received.Ready.Tools) != 8 || !received.Ready.AcceptsCancel || received.Heartbeat != int(hootproto.Heartbeat) {
		t.Errorf("ready %+v, heartbeat %d", received.Ready, received.Heartbeat)
	}
	const want = `{"type":"success","result":{"text":"the arguments","data":{"text":"grüß dich","big":9007199254740993}}}`
	for _, got := range []json.RawMessage{received.JSON, received.Msgpack} {
		if !strings.Contains(string(got), "9007199254740993") || !strings.Contains(string(got), `"the arguments"`) {
			t.Errorf("echoed %s, want %s", got, want)
		}
	}
	if e := received.Fault.Err; e == nil || e.Code != "model_busy" || e.Hint != "in a minute" || !sameJSON(e.Details, json.RawMessage(`{"seconds":60}`)) {
		t.Errorf("fault %+v", e)
	}
	if e := received.Missing.Err; e == nil || e.Code != hootproto.CodeToolNotFound {
		t.Errorf("missing %+v", e)
	}
	if !received.Ours || received.Progress.Message != "waiting" || received.Progress.Total != 1000 {
		t.Errorf("progress %+v", received.Progress)
	}
	if received.Cancel.Err != nil || received.Cancelled.Err == nil || received.Cancelled.Err.Code != "cancelled" {
		t.Errorf("cancelling answered %+v, the call %+v", received.Cancel, received.Cancelled)
	}
}

// withWait lists the tool wait as well.
type withWait struct{ answers }

func (w withWait) Tools(ctx context.Context) ([]tool.Info, error) {
	infos, err := w.answers.Tools(ctx)
	wait := infos[0]
	wait.Name = "wait"
	return append(infos, wait), err
}

// A backend on libzmq behind the hub: text, data, errors with their codes, and
// progress reach an MCP client.
func TestPythonBackendThroughTheHub(t *testing.T) {
	t.Parallel()
	s := newStack(t, startPython(t), traced{})
	progress := make(chan tool.Progress, 1000)
	caller := &tool.Caller{Progress: func(p tool.Progress) { progress <- p }}
	for range 100_000 { // broadcasts before the publisher has the subscription are lost
		view, err := s.call("greet", json.RawMessage(`{"name":"Ann"}`), caller)
		if err != nil || view.Text() != "Hello, Ann!" || !sameJSON(view.Structured, json.RawMessage(`{"length":3}`)) {
			t.Fatalf("greet: %+v, %v", view, err)
		}
		if len(progress) > 0 {
			break
		}
	}
	if p := <-progress; p.Progress != 0.5 || p.Total != 1 || p.Message != "half done" {
		t.Errorf("progress %+v", p)
	}
	view, err := s.call("divide", json.RawMessage(`{"a":1,"b":0}`), nil)
	if code, _ := faultOf(view); err != nil || !view.IsError || code != "internal_error" || !strings.HasPrefix(view.Text(), "internal_error: ZeroDivisionError") {
		t.Errorf("divide by zero: %+v, %v", view, err)
	}
	if _, err := s.call("greeet", json.RawMessage(`{}`), nil); err == nil || !strings.Contains(err.Error(), "greeet") {
		t.Errorf("a tool that does not exist: %v", err)
	}
}
