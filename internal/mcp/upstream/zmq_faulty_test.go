package upstream_test

import (
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstream/upstreamtest"
	"github.com/luanette/luanette/internal/zmq/hootproto"
	"github.com/luanette/luanette/internal/zmq/zmtp"
)

// scriptedBackend is a backend that answers each command as the test says, or not at all.
func scriptedBackend(t *testing.T, answers map[hootproto.Command]string) upstreamtest.Server {
	t.Helper()
	return slowBackend(t, answers, func(hootproto.Message, func()) bool { return true })
}

// slowBackend is such a backend. It asks for each message whether to answer it; the
// function that it passes closes its socket.
func slowBackend(t *testing.T, answers map[hootproto.Command]string, mayAnswer func(f hootproto.Message, close func()) bool) upstreamtest.Server {
	t.Helper()
	router, err := zmtp.Listen(t.Context(), zmtp.Router, "tcp://127.0.0.1:0", zmtp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	closeSocket := func() { go router.Close() }
	work.Go(func() {
		for m, err := router.Recv(t.Context()); err == nil; m, err = router.Recv(t.Context()) {
			f, err := hootproto.Parse(m)
			body, answered := answers[f.Command]
			if err != nil || !answered || !mayAnswer(f, closeSocket) {
				continue
			}
			answer := f.Answer(f.Command)
			switch f.Command {
			case hootproto.Request:
				answer.Command = hootproto.Reply
			case hootproto.Heartbeat:
				answer = f.HeartbeatReply()
			}
			if body != "" {
				answer.Content, answer.Body = hootproto.JSON, []byte(body)
			}
			_ = router.Send(t.Context(), answer.Frames())
		}
	})
	t.Cleanup(func() { router.Close(); work.Wait() })
	return upstreamtest.Server{Spec: upstream.Spec{Name: "test", Settings: upstream.Settings{URL: "zmq+" + router.Addr(), Wait: duration.Duration(-1)}}, Options: options(t)}
}

const (
	oneTool  = `{"protocol":"HOOT01","tools":["echo"]}`
	oneTool2 = `{"protocol":"HOOT01","protocols":["HOOT01","HOOT02"],"tools":["echo"]}`
	success  = `{"type":"success","result":{"text":"done","data":null}}`
)

func callEcho(h *upstreamtest.Harness, t *testing.T) (string, error) {
	result, err := h.Manager.Call(t.Context(), tool.Call{Ref: tool.Ref{Space: "test", Name: "echo"}})
	if err != nil {
		return "", err
	}
	view, err := result.View()
	return view.Text(), err
}

// A backend that answers no heartbeat counts as disconnected.
func TestBackendThatStopsAnswering(t *testing.T) {
	t.Parallel()
	srv := scriptedBackend(t, map[hootproto.Command]string{hootproto.Ready: oneTool})
	srv.Options.HealthInterval, srv.Options.HealthTimeout = 50*time.Millisecond, 200*time.Millisecond
	h := upstreamtest.Start(t, srv)
	e := h.Await(t, "upstream.reconnecting").Data.(upstream.Reconnecting)
	if !strings.Contains(e.Error, "not answering for ") || !strings.Contains(e.Hint, "not answering for ") || !strings.Contains(e.Hint, "heartbeats") {
		t.Errorf("lost because %+v", e)
	}
	infos, _ := h.Manager.Tools(t.Context())
	if len(infos) != 1 || infos[0].Name != "echo" || string(infos[0].Input) != `{"type":"object"}` {
		t.Errorf("tools %+v", infos)
	}
}

// A backend that hangs while a call is out is noticed by its heartbeats. The outcome of
// the call is unknown, and the status says for how long the backend has been silent, also
// while attempts to connect again get no answer.
func TestBackendThatHangsInACall(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	hangs := false
	srv := slowBackend(t, map[hootproto.Command]string{hootproto.Ready: oneTool2, hootproto.Heartbeat: "", hootproto.Request: success}, func(f hootproto.Message, _ func()) bool {
		mu.Lock()
		defer mu.Unlock()
		hangs = hangs || f.Command == hootproto.Request
		return !hangs
	})
	srv.Options.HealthInterval, srv.Options.HealthTimeout, srv.Options.ConnectTimeout = 50*time.Millisecond, 200*time.Millisecond, 200*time.Millisecond
	h := upstreamtest.Start(t, srv)
	_, err := callEcho(h, t)
	if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "its outcome is unknown: not answering for ") || fault.HintOf(err) == "" {
		t.Errorf("the call: %v", err)
	}
	for range 2 { // the session, and an attempt
		if e := h.Await(t, "upstream.reconnecting").Data.(upstream.Reconnecting); !strings.Contains(e.Error, "not answering for ") {
			t.Errorf("lost because %+v", e)
		}
	}
	st, _ := h.Manager.Status("test")
	if st.State == upstream.StateConnected || !strings.Contains(st.LastError, "not answering for ") || !strings.Contains(st.Hint, "not answering for ") {
		t.Errorf("status %+v", st)
	}
	if _, err := callEcho(h, t); !strings.Contains(err.Error(), "not answering for ") || !strings.Contains(fault.HintOf(err), "hangs") {
		t.Errorf("a call meanwhile: %v: %s", err, fault.HintOf(err))
	}
}

// A backend of HOOT01 may have a single thread: while it works, no answer is needed.
func TestOldBackendMayBeBusy(t *testing.T) {
	t.Parallel()
	srv := slowBackend(t, map[hootproto.Command]string{hootproto.Ready: oneTool, hootproto.Heartbeat: "", hootproto.Request: success}, func(f hootproto.Message, _ func()) bool {
		if f.Command == hootproto.Request {
			time.Sleep(400 * time.Millisecond) // a slow tool in the receive loop
		}
		return true
	})
	srv.Options.HealthInterval, srv.Options.HealthTimeout = 20*time.Millisecond, 50*time.Millisecond
	h := upstreamtest.Start(t, srv)
	if text, err := callEcho(h, t); err != nil || text != "done" {
		t.Errorf("the call: %q, %v", text, err)
	}
	if st, _ := h.Manager.Status("test"); st.Revision != hootproto.Hoot01 || st.Attempt != 0 {
		t.Errorf("status %+v", st)
	}
}

// When a backend ends during a call, the caller is told that the outcome is unknown.
func TestBackendThatDiesInACall(t *testing.T) {
	t.Parallel()
	srv := slowBackend(t, map[hootproto.Command]string{hootproto.Ready: oneTool2, hootproto.Heartbeat: "", hootproto.Request: success}, func(f hootproto.Message, closeSocket func()) bool {
		if f.Command == hootproto.Request {
			closeSocket()
			return false
		}
		return true
	})
	h := upstreamtest.Start(t, srv)
	_, err := callEcho(h, t)
	if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "its outcome is unknown") || !strings.Contains(fault.HintOf(err), "took effect") {
		t.Errorf("the call: %v: %s", err, fault.HintOf(err))
	}
}

// An entry of the catalog that is against the specification is left out, and the status
// says so; the others are used.
func TestBackendWithBadTools(t *testing.T) {
	t.Parallel()
	catalog := `{"protocol":"HOOT01","protocols":["HOOT02"],"tools":["echo",{"name":7},{"name":"a b"},"ü",{"name":"flat","input_schema":"none"},null,[],{"name":"read_only","read_only":"yes"},{"name":"good"}]}`
	h := upstreamtest.Start(t, scriptedBackend(t, map[hootproto.Command]string{hootproto.Ready: catalog, hootproto.Heartbeat: "", hootproto.Request: success}))
	infos, _ := h.Manager.Tools(t.Context())
	if len(infos) != 2 || infos[0].Name != "echo" || infos[1].Name != "good" {
		t.Errorf("tools %+v", infos)
	}
	st, _ := h.Manager.Status("test")
	want := []string{
		`entry 2: tool "": name must not be a number`, `entry 3: tool "a b": a name has 1 to 128 letters, digits, _ or -`, `entry 4: tool "ü": a name`,
		`entry 5: tool "flat": input_schema must be an object`, `entry 6: tool ""`, `entry 7: [] is neither a tool nor its name`, `entry 8: tool "read_only": read_only must not be a string`,
	}
	if len(st.Dropped) != len(want) {
		t.Fatalf("left out %q", st.Dropped)
	}
	for i, reason := range st.Dropped {
		if !strings.HasPrefix(reason, want[i]) {
			t.Errorf("left out because %q, want %q", reason, want[i])
		}
	}
	if text, err := callEcho(h, t); err != nil || text != "done" {
		t.Errorf("echo: %q, %v", text, err)
	}
}

// The error says how the backend violates the protocol.
func TestBackendsThatMisbehave(t *testing.T) {
	t.Parallel()
	for ready, want := range map[string]string{
		"":                   "read body",
		"nonsense":           "not JSON",
		`{"tools":[]}`:       `the backend uses protocol "", not HOOT01`,
		`{"protocol":"MDP"}`: `the backend uses protocol "MDP", not HOOT01`,
	} {
		h := upstreamtest.Open(t, scriptedBackend(t, map[hootproto.Command]string{hootproto.Ready: ready}))
		if e := h.Await(t, "upstream.reconnecting").Data.(upstream.Reconnecting); !strings.Contains(e.Error, want) {
			t.Errorf("ready %q: %s", ready, e.Error)
		}
	}
	srv := scriptedBackend(t, nil)
	srv.Options.ConnectTimeout = 200 * time.Millisecond
	h := upstreamtest.Open(t, srv)
	// Three timeouts end at the same moment; any of them may be reported.
	limits := regexp.MustCompile("no connection within|no answer|not finished within")
	if e := h.Await(t, "upstream.reconnecting").Data.(upstream.Reconnecting); !limits.MatchString(e.Error) {
		t.Errorf("one that says nothing: %s", e.Error)
	}
	h = upstreamtest.Start(t, scriptedBackend(t, map[hootproto.Command]string{
		hootproto.Ready: oneTool, hootproto.Heartbeat: "", hootproto.Request: `{"type":"maybe"}`,
	}))
	_, err := h.Manager.Call(t.Context(), tool.Call{Ref: tool.Ref{Space: "test", Name: "echo"}})
	if fault.CodeOf(err) != fault.Upstream || !strings.Contains(err.Error(), "neither success nor error") {
		t.Errorf("an answer that is none: %v", err)
	}
}
