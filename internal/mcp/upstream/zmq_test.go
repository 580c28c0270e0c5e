package upstream_test

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstream/upstreamtest"
	"github.com/luanette/luanette/internal/zmq/hootserver"
)

// toolFuncs is a source whose tools are functions.
type toolFuncs map[string]func(ctx context.Context, call tool.Call) (tool.Result, error)

func (s toolFuncs) Tools(context.Context) ([]tool.Info, error) {
	var infos []tool.Info
	for name := range s {
		infos = append(infos, tool.Info{
			Ref: tool.Ref{Name: name}, Title: "T", Description: "Does " + name, Input: json.RawMessage(`{"type":"object"}`),
			Hints: tool.Hints{ReadOnly: name == "echo" || name == "cancelled"},
		})
	}
	slices.SortFunc(infos, func(a, b tool.Info) int { return strings.Compare(a.Name, b.Name) })
	return infos, nil
}

func (s toolFuncs) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	return s[call.Ref.Name](ctx, call)
}

// suiteTools has the tools of the suite. Broadcasts may be lost, so progress is
// repeated until the call is cancelled.
func suiteTools() toolFuncs {
	var cancelled atomic.Int64
	return toolFuncs{
		"echo": func(_ context.Context, call tool.Call) (tool.Result, error) {
			var in struct{ Text string }
			if err := json.Unmarshal(call.Args, &in); err != nil {
				return tool.Result{}, fault.Wrap(fault.InvalidParams, err, "read arguments")
			}
			return tool.Output(in.Text, nil)
		},
		"cancelled": func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Output(strconv.FormatInt(cancelled.Load(), 10), nil)
		},
		"wait": func(ctx context.Context, call tool.Call) (tool.Result, error) {
			for n := 1.0; ; n++ {
				call.Caller.Progress(tool.Progress{Progress: n})
				select {
				case <-ctx.Done():
					cancelled.Add(1)
					return tool.Result{}, ctx.Err()
				case <-time.After(10 * time.Millisecond):
				}
			}
		},
	}
}

// testBackend serves tools at one address, and can be closed and opened again.
type testBackend struct {
	opts  hootserver.Options
	close func()
}

func (h *testBackend) open(t *testing.T) {
	t.Helper()
	var b *hootserver.Server
	clocktest.Await(t, func() bool { // a process just being started may still hold the old socket
		var err error
		b, err = hootserver.Listen(t.Context(), h.opts)
		return err == nil
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var work sync.WaitGroup
	work.Go(func() { _ = b.Serve(ctx) })
	h.close = func() { b.Close(); cancel(); work.Wait() } // without notice, like a crash
}

func newTestBackend(t *testing.T, s toolFuncs) *testBackend {
	h := &testBackend{opts: hootserver.Options{Name: "testBackend", Source: s, Events: event.New(event.BusOptions{})}}
	host, port, _ := strings.Cut(netguardtest.ReservedAddress(), ":")
	h.opts.Listen, h.opts.Broadcast = "tcp://"+host+":"+port, "tcp://"+host+":0"
	h.open(t)
	t.Cleanup(func() { h.close() })
	return h
}

func (h *testBackend) srv(t *testing.T) upstreamtest.Server {
	return upstreamtest.Server{
		Spec:    upstream.Spec{Name: "test", Settings: upstream.Settings{URL: "zmq+" + h.opts.Listen, Wait: duration.Duration(clocktest.Timeout)}},
		Options: options(t),
		Kill:    func(*testing.T) { h.close() },
		Restart: h.open,
	}
}

func TestBackend(t *testing.T) {
	t.Parallel()
	upstreamtest.Run(t, func(t *testing.T) upstreamtest.Server { return newTestBackend(t, suiteTools()).srv(t) })
}

// All progress and log messages of a call arrive before its result, although they come over
// another connection.
func TestBroadcastsOfACallPrecedeItsResult(t *testing.T) {
	t.Parallel()
	const steps = 4
	h := upstreamtest.Start(t, newTestBackend(t, toolFuncs{
		"climb": func(_ context.Context, call tool.Call) (tool.Result, error) {
			for n := 1.0; n <= steps; n++ {
				call.Caller.Progress(tool.Progress{Progress: n, Total: steps})
			}
			call.Caller.Log(tool.Log{Level: "info", Data: json.RawMessage(`"up"`)})
			return tool.Output("up", nil)
		},
	}).srv(t))
	climb := func() (got []float64) {
		t.Helper()
		_, err := h.Manager.Call(t.Context(), tool.Call{Ref: tool.Ref{Space: "test", Name: "climb"}, Caller: &tool.Caller{
			Progress: func(p tool.Progress) { got = append(got, p.Progress) }, Log: func(tool.Log) { got = append(got, 0) },
		}})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	clocktest.Await(t, func() bool { return len(climb()) == steps+1 }) // the subscription arrives later
	for range 300 {
		if got := climb(); !slices.Equal(got, []float64{1, 2, 3, 4, 0}) {
			t.Fatalf("received %v", got)
		}
	}
}

// Text, data and every part of an error reach the caller; files too.
func TestBackendResults(t *testing.T) {
	t.Parallel()
	h := upstreamtest.Start(t, newTestBackend(t, toolFuncs{
		"data": func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Output("forty-two", map[string]int{"n": 42})
		},
		"list": func(context.Context, tool.Call) (tool.Result, error) { return tool.Output("", []int{1, 2}) },
		"fail": func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{}, fault.New("out_of_tune", "the lute is off").WithHint("tune it").WithDetails(map[string]int{"cents": -30})
		},
		"picture": func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"dot"},{"type":"image","mimeType":"image/png","data":"AQI="},{"type":"audio","mimeType":"audio/wav","data":"AQ=="},{"type":"resource_link","uri":"a:b","name":"b"},{"type":"resource","resource":{"uri":"c:d","text":"words"}}]}`)}, nil
		},
	}).srv(t))
	for name, want := range map[string]string{
		"data":    `{"content":[{"type":"text","text":"forty-two"}],"structuredContent":{"n":42}}`,
		"list":    `{"content":[{"type":"text","text":"[1,2]"}],"structuredContent":{"result":[1,2]}}`,
		"fail":    `{"content":[{"type":"text","text":"out_of_tune: the lute is off\ntune it\n{\"cents\":-30}"}],"isError":true,"_meta":{"luanette/error":{"code":"out_of_tune","message":"the lute is off","hint":"tune it","details":{"cents":-30}}}}`,
		"picture": `{"content":[{"type":"text","text":"dot"},{"type":"image","data":"AQI=","mimeType":"image/png"},{"type":"audio","data":"AQ==","mimeType":"audio/wav"},{"type":"resource_link","uri":"a:b","name":"b"},{"type":"resource","resource":{"uri":"c:d","text":"words"}}]}`,
	} {
		got, err := h.Manager.Call(t.Context(), tool.Call{Ref: tool.Ref{Space: "test", Name: name}})
		if err != nil || string(got.Raw) != want {
			t.Errorf("%s: %v\ngot  %s\nwant %s", name, err, got.Raw, want)
		}
	}
	st, _ := h.Manager.Status("test")
	if st.Transport != "zmq+tcp" || st.Revision != "HOOT02" || st.Era != "" || string(st.ServerInfo) != `{"name":"testBackend","version":"HOOT02"}` || st.Stats.Errors != 1 {
		t.Errorf("status %+v", st)
	}
	infos, _ := h.Manager.Tools(t.Context())
	if len(infos) != 4 || infos[0].Title != "T" || infos[0].Description != "Does data" {
		t.Errorf("tools %+v", infos)
	}
}

// Broadcasts of a backend become events. They cannot be mistaken for those of
// another source.
func TestBackendBroadcasts(t *testing.T) {
	t.Parallel()
	th := newTestBackend(t, suiteTools())
	h := upstreamtest.Start(t, th.srv(t))
	for { // until the backend has received the subscription
		th.opts.Events.Publish(rawEvent{"beat.tick", `{"beat":4,"position_beats":4,"tempo_bpm":90}`})
		if e, ok := h.Poll(); ok && e.Type == "beat.tick" {
			break
		}
		h.Echo(t, "there and back again")
	}
	for _, n := range []rawEvent{
		{"artifact.created", `{"artifact_id":"a","content_hash":"h","tags":["x"],"more":1}`},
		{"job.finished", `{"job_id":"j","status":"complete"}`},
		{"job.progress", `{"job_id":"j","fraction":0.5,"message":"half"}`},
		{"transport.state_changed", `{"state":"playing","position_beats":0,"tempo_bpm":120}`},
		{"marker.reached", `{"position_beats":8,"marker_type":"cue"}`},
		{"config.update", `{"key":"k","value":1}`},
		{"script.invalidate", `{"hash":"h"}`},
	} {
		th.opts.Events.Publish(n)
	}
	for _, want := range [][2]string{
		{"artifact.created", `{"artifact_id":"a","content_hash":"h","more":1,"tags":["x"],"upstream":"test"}`},
		{"job.state_changed", `{"job_id":"j","state":"complete","upstream":"test"}`},
		{"job.progress", `{"job_id":"j","percent":0.5,"message":"half","fraction":0.5,"upstream":"test"}`},
		{"transport.state_changed", `{"position_beats":0,"state":"playing","tempo_bpm":120,"upstream":"test"}`},
		{"marker.reached", `{"marker_type":"cue","position_beats":8,"upstream":"test"}`},
		{"config.update", `{"key":"k","value":1,"upstream":"test"}`},
		{"script.invalidate", `{"hash":"h","upstream":"test"}`},
	} {
		e := h.Await(t, want[0])
		if raw, err := json.Marshal(e.Data); err != nil || string(raw) != want[1] {
			t.Errorf("%s: %s, %v, want %s", want[0], raw, err, want[1])
		}
	}
}

// rawEvent is an event of any type.
type rawEvent struct{ kind, data string }

func (n rawEvent) EventType() string            { return n.kind }
func (n rawEvent) MarshalJSON() ([]byte, error) { return []byte(n.data), nil }

func TestBackendAddressesCanBeRefused(t *testing.T) {
	t.Parallel()
	th := newTestBackend(t, suiteTools())
	srv := th.srv(t)
	refused := fault.New(fault.Denied, "not there")
	srv.Options.DialControl = func(string, string, syscall.RawConn) error { return refused }
	h := upstreamtest.Open(t, srv)
	if e := h.Await(t, "upstream.reconnecting").Data.(upstream.Reconnecting); !strings.Contains(e.Error, "not there") {
		t.Errorf("a guarded backend: %+v", e)
	}
	srv.Spec.Trusted = true
	if text := upstreamtest.Start(t, srv).Echo(t, "trusted"); text != "trusted" {
		t.Errorf("echo said %q", text)
	}
}

func TestBackendSpecs(t *testing.T) {
	t.Parallel()
	for _, bad := range []upstream.Spec{
		{Settings: upstream.Settings{URL: "zmq+tcp://127.0.0.1"}}, {Settings: upstream.Settings{URL: "zmq+tcp://:5580"}}, {Settings: upstream.Settings{URL: "zmq+tcp://127.0.0.1:5580/mcp"}},
		{Settings: upstream.Settings{URL: "zmq+tcp://127.0.0.1:5580", Headers: map[string]string{"a": "b"}}}, {Settings: upstream.Settings{URL: "zmq+tcp://127.0.0.1:5580", BearerEnv: "TOKEN"}},
	} {
		bad.Name = "x"
		if err := bad.Validate(); fault.CodeOf(err) != fault.InvalidParams || fault.HintOf(err) == "" {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// An answer that is too large fails only its own call.
func TestBackendAnswersTooMuch(t *testing.T) {
	t.Parallel()
	srv := newTestBackend(t, toolFuncs{
		"echo": suiteTools()["echo"],
		"flood": func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Output(strings.Repeat("x", 3000), nil)
		},
	}).srv(t)
	srv.Options.MaxMessage = 2000
	h := upstreamtest.Start(t, srv)
	_, err := h.Manager.Call(t.Context(), tool.Call{Ref: tool.Ref{Space: "test", Name: "flood"}})
	if fault.CodeOf(err) != fault.Limit {
		t.Errorf("too much: %v", err)
	}
	if text := h.Echo(t, "still here"); text != "still here" {
		t.Errorf("echo said %q", text)
	}
	if st, _ := h.Manager.Status("test"); st.Generation != 1 || st.Attempt != 0 {
		t.Errorf("status %+v", st)
	}
}
