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

// A front end on libzmq, in both encodings, with broadcasts and calling off.
func TestPythonFrontEnd(t *testing.T) {
	t.Parallel()
	needPython(t)
	source := newOrchestra()
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
	cmd := exec.CommandContext(t.Context(), python, "python/frontend.py", b.Addr())
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var heard struct {
		Ready          hootproto.Catalog
		Heartbeat      int
		JSON, Msgpack  json.RawMessage
		Fault, Missing hootproto.Outcome
		Progress       hootproto.Progress
		Ours           bool `json:"progress_is_ours"`
		Cancel         hootproto.Outcome
		Cancelled      hootproto.Outcome
	}
	if err := json.Unmarshal(out, &heard); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if heard.Ready.Protocol != hootproto.Magic || len(heard.Ready.Tools) != 8 || !heard.Ready.AcceptsCancel || heard.Heartbeat != int(hootproto.Heartbeat) {
		t.Errorf("ready %+v, heartbeat %d", heard.Ready, heard.Heartbeat)
	}
	const want = `{"type":"success","result":{"text":"the arguments","data":{"text":"grüß dich","big":9007199254740993}}}`
	for _, got := range []json.RawMessage{heard.JSON, heard.Msgpack} {
		if !strings.Contains(string(got), "9007199254740993") || !strings.Contains(string(got), `"the arguments"`) {
			t.Errorf("echoed %s, want %s", got, want)
		}
	}
	if e := heard.Fault.Err; e == nil || e.Code != "model_busy" || e.Hint != "in a minute" || !sameJSON(e.Details, json.RawMessage(`{"seconds":60}`)) {
		t.Errorf("fault %+v", e)
	}
	if e := heard.Missing.Err; e == nil || e.Code != hootproto.CodeToolNotFound {
		t.Errorf("missing %+v", e)
	}
	if !heard.Ours || heard.Progress.Message != "waiting" || heard.Progress.Total != 1000 {
		t.Errorf("progress %+v", heard.Progress)
	}
	if heard.Cancel.Err != nil || heard.Cancelled.Err == nil || heard.Cancelled.Err.Code != "cancelled" {
		t.Errorf("cancelling answered %+v, the call %+v", heard.Cancel, heard.Cancelled)
	}
}

// withWait lists the tool wait as well.
type withWait struct{ orchestra }

func (w withWait) Tools(ctx context.Context) ([]tool.Info, error) {
	infos, err := w.orchestra.Tools(ctx)
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
	for range 100_000 { // until the publisher knows our subscription, its broadcasts pass us by
		view, err := s.call("greet", json.RawMessage(`{"name":"Ann"}`), caller)
		if err != nil || view.Text() != "Hello, Ann!" || !sameJSON(view.Structured, json.RawMessage(`{"length":3}`)) {
			t.Fatalf("greet: %+v, %v", view, err)
		}
		if len(progress) > 0 {
			break
		}
	}
	if p := <-progress; p.Progress != 0.5 || p.Total != 1 || p.Message != "clearing my throat" {
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
