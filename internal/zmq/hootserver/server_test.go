package hootserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/zmq/hootclient"
	"github.com/luanette/luanette/internal/zmq/hootproto"
	"github.com/luanette/luanette/internal/zmq/hootserver"
	"github.com/luanette/luanette/internal/zmq/zmtp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(clocktest.Settled(m)) }

// toolFuncs is a source whose tools are functions.
type toolFuncs map[string]func(ctx context.Context, call tool.Call) (tool.Result, error)

func (s toolFuncs) Tools(context.Context) ([]tool.Info, error) {
	var infos []tool.Info
	for name := range s {
		infos = append(infos, tool.Info{
			Ref: tool.Ref{Space: "stage", Name: name}, Title: strings.ToUpper(name), Description: "Does " + name,
			Input: json.RawMessage(`{"type":"object"}`), Hints: tool.Hints{ReadOnly: name == "echo", ClosedWorld: true},
		})
	}
	slices.SortFunc(infos, func(a, b tool.Info) int { return strings.Compare(a.Name, b.Name) })
	return infos, nil
}

func (s toolFuncs) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	return s[call.Ref.Name](ctx, call)
}

func echo(_ context.Context, call tool.Call) (tool.Result, error) {
	return tool.Output("said "+string(call.Args), call.Args)
}

// open serves a source for the length of a test.
func open(t *testing.T, opts hootserver.Options) (b *hootserver.Server, stop func()) {
	t.Helper()
	opts.Name, opts.Listen = "stage", "tcp://127.0.0.1:0"
	b, err := hootserver.Listen(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- b.Serve(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(stop)
	return b, stop
}

func dial(t *testing.T, b *hootserver.Server) *hootclient.Client {
	t.Helper()
	c, err := hootclient.Dial(t.Context(), b.Addr(), hootclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if _, _, err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func call(t *testing.T, c *hootclient.Client, name, args string) hootproto.Outcome {
	t.Helper()
	outcome, err := c.Call(t.Context(), hootclient.ToolCall{ID: hootproto.NewID(), Name: name, Arguments: json.RawMessage(args)})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return outcome
}

func TestCatalog(t *testing.T) {
	t.Parallel()
	changed := make(chan struct{})
	b, _ := open(t, hootserver.Options{Source: toolFuncs{"echo": echo, "sing": echo}, Broadcast: "tcp://127.0.0.1:0", ToolsChanged: changed})
	notified := make(chan struct{}, 1)
	c, err := hootclient.Dial(t.Context(), b.Addr(), hootclient.Options{OnToolsChanged: func() { notified <- struct{}{} }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	catalog, service, err := c.Ready(t.Context())
	if err != nil || service != "stage" || catalog.Broadcasts != b.Broadcasts() || !catalog.AcceptsCancel || len(catalog.Tools) != 2 {
		t.Fatalf("catalog %+v of %q: %v", catalog, service, err)
	}
	if got := catalog.Tools[0]; got.Name != "echo" || got.Title != "ECHO" || got.Description != "Does echo" || !got.ReadOnly || !got.ClosedWorld || got.Destructive {
		t.Errorf("tool %+v", got)
	}
	if !catalog.Tools[1].Destructive {
		t.Errorf("tool %+v", catalog.Tools[1])
	}
	if err := c.Heartbeat(t.Context()); err != nil {
		t.Error(err)
	}
	changed <- struct{}{}
	<-notified
}

// Every heartbeat is answered once. What a client sends because it took the answer for a
// question, as clients of HOOT01 do after a pause, is not answered.
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	b, _ := open(t, hootserver.Options{Source: toolFuncs{"echo": echo}})
	socket, err := zmtp.Dial(t.Context(), zmtp.Dealer, b.Addr(), zmtp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	send := func(m hootproto.Message) {
		if err := socket.Send(t.Context(), m.Frames()); err != nil {
			t.Fatal(err)
		}
	}
	receive := func() hootproto.Message {
		frames, err := socket.Recv(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m, err := hootproto.Parse(frames)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for protocol, reply := range map[string]hootproto.Command{hootproto.Hoot01: hootproto.Heartbeat, hootproto.Hoot02: hootproto.HeartbeatReply} {
		waiting := map[hootproto.ID]bool{}
		for range 20 {
			beat := hootproto.New(hootproto.Heartbeat, "")
			beat.Protocol, waiting[beat.ID] = protocol, true
			send(beat)
		}
		for len(waiting) > 0 {
			answer := receive()
			if answer.Command != reply || answer.Protocol != protocol || !waiting[answer.ID] {
				t.Fatalf("in %s it was answered: %+v", protocol, answer)
			}
			delete(waiting, answer.ID)
			send(answer) // as if it were a question
		}
		ask := hootproto.New(hootproto.Ready, "")
		send(ask)
		if last := receive(); last.ID != ask.ID {
			t.Errorf("in %s an answer was answered: %+v", protocol, last)
		}
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	b, _ := open(t, hootserver.Options{Source: toolFuncs{
		"echo": echo,
		"fault": func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{}, fault.New(fault.NotFound, "no such tune").WithHint("list them").WithDetails(map[string]int{"n": 7})
		},
		"failure": func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Failure(fault.New(fault.Limit, "too long").WithDetails([]int{1})), nil
		},
		"custom": func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"out of tune"}],"isError":true}`)}, nil
		},
		"picture": func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"a dot"},{"type":"image","mimeType":"image/png","data":"AQI="},{"type":"resource_link","uri":"a:b","name":"b"}]}`)}, nil
		},
		"panic": func(context.Context, tool.Call) (tool.Result, error) { panic("a bug") },
	}})
	c := dial(t, b)
	if got := call(t, c, "echo", `{"a":1}`); got.Err != nil || got.Output.Text != `said {"a":1}` || string(got.Output.Data) != `{"a":1}` {
		t.Errorf("echo: %+v", got)
	}
	for name, want := range map[string]hootproto.ToolError{
		"fault":   {Code: "not_found", Message: "no such tune", Hint: "list them", Details: json.RawMessage(`{"n":7}`)},
		"failure": {Code: "limit_exceeded", Message: "too long", Details: json.RawMessage(`[1]`)},
		"custom":  {Code: "tool_failed", Message: "out of tune"},
		"panic":   {Code: "internal_error", Message: "tool panic panicked"},
		"ech":     {Code: "tool_not_found", Message: `no tool "ech"`, Hint: "did you mean echo?"},
	} {
		got := call(t, c, name, `{}`).Err
		if got == nil || got.Code != want.Code || got.Message != want.Message || got.Hint != want.Hint || string(got.Details) != string(want.Details) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	want := []hootproto.Attachment{{MimeType: "image/png", Data: []byte{1, 2}}, {URI: "a:b", Name: "b"}}
	if got := call(t, c, "picture", `{}`).Output; got.Text != "a dot" || len(got.Attachments) != 2 ||
		string(got.Attachments[0].Data) != string(want[0].Data) || got.Attachments[0].MimeType != "image/png" || got.Attachments[1].URI != "a:b" || got.Attachments[1].Name != "b" {
		t.Errorf("picture: %+v", got)
	}
}

// raw is a client that sends any message.
type raw struct {
	*testing.T
	socket *zmtp.Socket
}

func rawDial(t *testing.T, b *hootserver.Server) raw {
	t.Helper()
	socket, err := zmtp.Dial(t.Context(), zmtp.Dealer, b.Addr(), zmtp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(socket.Close)
	return raw{t, socket}
}

func (r raw) send(m zmtp.Message) {
	r.Helper()
	if err := r.socket.Send(r.Context(), m); err != nil {
		r.Fatal(err)
	}
}

func (r raw) next() hootproto.Message {
	r.Helper()
	m, err := r.socket.Recv(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	f, err := hootproto.Parse(m)
	if err != nil {
		r.Fatal(err)
	}
	return f
}

func TestEveryContentType(t *testing.T) {
	t.Parallel()
	b, _ := open(t, hootserver.Options{Source: toolFuncs{"echo": echo}})
	r := rawDial(t, b)
	r.send(zmtp.Message{[]byte("nonsense")})
	for _, body := range []string{
		`{"type":"tool_call","name":"echo","arguments":{"x":1}}`,
		`{"type":"echo","x":1}`, // the older form
	} {
		for _, content := range []hootproto.ContentType{hootproto.JSON, hootproto.MsgPack} {
			f := hootproto.New(hootproto.Request, "stage")
			f.Traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
			f, err := f.With(content, json.RawMessage(body))
			if err != nil {
				t.Fatal(err)
			}
			r.send(f.Frames())
			answer := r.next()
			var outcome hootproto.Outcome
			if err := answer.Decode(&outcome); err != nil || outcome.Err != nil || string(outcome.Output.Data) != `{"x":1}` {
				t.Errorf("%s %s: %+v, %v", content, body, outcome, err)
			}
			if answer.ID != f.ID || answer.Command != hootproto.Reply || answer.Content != content || answer.Traceparent != f.Traceparent || answer.Service != "stage" {
				t.Errorf("%s: answered by %+v", content, answer)
			}
		}
	}
	for _, f := range []hootproto.Message{
		{Command: hootproto.Request, Content: hootproto.Binary, ID: hootproto.NewID(), Body: []byte{1}},
		{Command: hootproto.Request, Content: hootproto.JSON, ID: hootproto.NewID(), Body: []byte("{")},
		{Command: hootproto.Request, Content: hootproto.JSON, ID: hootproto.NewID(), Body: []byte(`{"type":"tool_call","name":"echo","arguments":[]}`)},
		{Command: hootproto.Request, Content: hootproto.MsgPack, ID: hootproto.NewID(), Body: []byte{0xc1}},
		{Command: hootproto.Request, Content: hootproto.Empty, ID: hootproto.NewID()},
	} {
		r.send(f.Frames())
		var outcome hootproto.Outcome
		if answer := r.next(); answer.ID != f.ID || answer.Decode(&outcome) != nil || outcome.Err == nil || outcome.Err.Code != hootproto.CodeInvalidParams {
			t.Errorf("%q: answered by %+v", f.Body, outcome)
		}
	}
}

func TestProgressNamesTheRequest(t *testing.T) {
	t.Parallel()
	bus := event.New(event.BusOptions{})
	received := make(chan hootproto.Broadcast, 16)
	b, _ := open(t, hootserver.Options{Broadcast: "tcp://127.0.0.1:0", Events: bus, Source: toolFuncs{
		"climb": func(_ context.Context, call tool.Call) (tool.Result, error) {
			call.Caller.Progress(tool.Progress{Progress: 3, Total: 4, Message: "nearly"})
			call.Caller.Log(tool.Log{Level: "info", Logger: "climber", Data: json.RawMessage(`"windy"`)})
			return tool.Output("up", nil)
		},
	}})
	c := dial(t, b)
	if err := c.Subscribe(t.Context(), b.Broadcasts(), func(o hootproto.RawBroadcast) {
		if n, err := o.Decode(); err == nil {
			received <- n
		}
	}); err != nil {
		t.Fatal(err)
	}
	for len(received) == 0 { // the subscription arrives later
		bus.Publish(rawEvent{"beat.tick", `{"beat":1,"position_beats":1,"tempo_bpm":120}`})
		select {
		case n := <-received:
			received <- n
		case <-time.After(10 * time.Millisecond):
		}
	}
	id := hootproto.NewID()
	if _, err := c.Call(t.Context(), hootclient.ToolCall{ID: id, Name: "climb"}); err != nil {
		t.Fatal(err)
	}
	bus.Publish(rawEvent{"job.started", `{"job_id":"j"}`})
	bus.Publish(rawEvent{"job.finished", `{"job_id":"j","status":"failed"}`})
	bus.Publish(rawEvent{"job.progress", `{"job_id":"j","fraction":0.5,"message":"half"}`})
	bus.Publish(rawEvent{"artifact.created", `{"artifact_id":"a","content_hash":"h","tags":["t"],"upstream":"other"}`})
	bus.Publish(rawEvent{"upstream.connected", `{}`})
	bus.Publish(rawEvent{"artifact.created", `{"artifact_id":"a","content_hash":"h","tags":["t"]}`})
	artifact := hootproto.Shutdown{Reason: `{"artifact_id":"a","content_hash":"h","tags":["t"],"type":"artifact_created"}`}
	got := map[hootproto.Broadcast]bool{}
	for {
		n := <-received
		switch b := n.(type) { // raw JSON cannot be compared
		case hootproto.JobStateChanged:
			n = hootproto.Shutdown{Reason: b.JobID + " " + b.State}
		case hootproto.RawBroadcast:
			n = hootproto.Shutdown{Reason: string(b.Raw)}
		}
		got[n] = true
		if got[artifact] {
			break
		}
	}
	for _, want := range []hootproto.Broadcast{
		hootproto.Shutdown{Reason: `{"beat":1,"position_beats":1,"tempo_bpm":120,"type":"beat_tick"}`},
		hootproto.Progress{JobID: id.String(), Percent: 0.75, Message: "nearly", Done: 3, Total: 4},
		hootproto.Log{Level: "info", Message: "windy", Source: "climber", JobID: id.String()},
		hootproto.Shutdown{Reason: "j running"}, hootproto.Shutdown{Reason: "j failed"},
		hootproto.Progress{JobID: "j", Percent: 0.5, Message: "half"},
	} {
		if !got[want] {
			t.Errorf("no broadcast %+v among %+v", want, got)
		}
	}
}

// rawEvent is an event of any type.
type rawEvent struct{ kind, data string }

func (e rawEvent) EventType() string            { return e.kind }
func (e rawEvent) MarshalJSON() ([]byte, error) { return []byte(e.data), nil }

// hold is a tool that runs until it is cancelled or released.
func hold(began chan<- struct{}, ended chan<- error, release <-chan struct{}) func(context.Context, tool.Call) (tool.Result, error) {
	return func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		began <- struct{}{}
		select {
		case <-ctx.Done():
			ended <- context.Cause(ctx)
			return tool.Result{}, ctx.Err()
		case <-release:
			return tool.Output("released", nil)
		}
	}
}

func TestCallsAreCancelled(t *testing.T) {
	t.Parallel()
	began, ended := make(chan struct{}), make(chan error, 1)
	b, _ := open(t, hootserver.Options{Source: toolFuncs{"hold": hold(began, ended, nil)}})
	for name, end := range map[string]func(cancel context.CancelFunc, c *hootclient.Client){
		"the client cancelled the call": func(cancel context.CancelFunc, _ *hootclient.Client) { cancel() },
		"the client disconnected":       func(_ context.CancelFunc, c *hootclient.Client) { c.Close() },
	} {
		c := dial(t, b)
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			outcome, err := c.Call(ctx, hootclient.ToolCall{ID: hootproto.NewID(), Name: "hold"})
			if err == nil && outcome.Err != nil { // the reply came before the cancellation
				err = errors.New(outcome.Err.Message)
			}
			failed <- err
		}()
		<-began
		end(cancel, c)
		if err := <-failed; err == nil || errors.Is(err, hootclient.ErrNotSent) {
			t.Errorf("the call ended with %v", err)
		}
		if err := <-ended; err.Error() != name {
			t.Errorf("cancelled because %v, want %s", err, name)
		}
		cancel()
	}
}

// A call that was cancelled has the code cancelled, in whatever way its tool ended.
func TestCancelledCallsHaveTheirCode(t *testing.T) {
	t.Parallel()
	began := make(chan struct{})
	ends := map[string]func(ctx context.Context) (tool.Result, error){
		"context": func(ctx context.Context) (tool.Result, error) { return tool.Result{}, ctx.Err() },
		"cause":   func(ctx context.Context) (tool.Result, error) { return tool.Result{}, context.Cause(ctx) },
		"result":  func(ctx context.Context) (tool.Result, error) { return tool.Failure(context.Cause(ctx)), nil },
		"other":   func(context.Context) (tool.Result, error) { return tool.Failed("it did not work"), nil },
	}
	source := toolFuncs{}
	for name, end := range ends {
		source[name] = func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			began <- struct{}{}
			<-ctx.Done()
			return end(ctx)
		}
	}
	b, _ := open(t, hootserver.Options{Source: source})
	r := rawDial(t, b)
	for name := range ends {
		request, err := hootproto.New(hootproto.Request, "stage").With(hootproto.JSON, hootproto.Call{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		r.send(request.Frames())
		<-began
		cancel, err := hootproto.New(hootproto.Request, "stage").With(hootproto.JSON, hootproto.Cancel{RequestID: request.ID.String()})
		if err != nil {
			t.Fatal(err)
		}
		r.send(cancel.Frames())
		answer := r.next()
		for answer.ID != request.ID { // that of the cancellation
			answer = r.next()
		}
		var outcome hootproto.Outcome
		if err := answer.Decode(&outcome); err != nil || outcome.Err == nil || outcome.Err.Code != "cancelled" || outcome.Err.Message != "the client cancelled the call" {
			t.Errorf("%s: %+v %+v, %v", name, outcome, outcome.Err, err)
		}
	}
}

func TestTooManyCalls(t *testing.T) {
	t.Parallel()
	began, release := make(chan struct{}), make(chan struct{})
	b, _ := open(t, hootserver.Options{MaxCalls: 2, Source: toolFuncs{"hold": hold(began, nil, release)}})
	c := dial(t, b)
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() { call(t, c, "hold", `{}`) })
		<-began
	}
	if got := call(t, c, "hold", `{}`).Err; got == nil || got.Code != hootproto.CodeLimit || !got.Unexecuted() {
		t.Errorf("one too many: %+v", got)
	}
	close(release)
	calls.Wait()
	go func() { <-began }()
	// A reply arrives shortly before its call is no longer counted.
	clocktest.Await(t, func() bool { return call(t, c, "hold", `{}`).Err == nil }, func() string { return "calls are still refused" })
}

// TestOneIDIsOneCall checks that a request with the id of a running call does not start
// a second call.
func TestOneIDIsOneCall(t *testing.T) {
	t.Parallel()
	began, release := make(chan struct{}, 2), make(chan struct{})
	b, _ := open(t, hootserver.Options{Source: toolFuncs{"hold": hold(began, nil, release), "echo": echo}})
	r := rawDial(t, b)
	ask := func(id hootproto.ID, name string) {
		f, err := hootproto.Message{Command: hootproto.Request, ID: id}.With(hootproto.JSON, hootproto.Call{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		r.send(f.Frames())
	}
	twice, other := hootproto.NewID(), hootproto.NewID()
	ask(twice, "hold")
	<-began
	ask(twice, "hold")
	ask(other, "echo")
	if f := r.next(); f.ID != other {
		t.Errorf("the second call of the same id was answered")
	}
	close(release)
	if f := r.next(); f.ID != twice || len(began) != 0 {
		t.Errorf("answered %v, begun again %d times", f.ID, len(began))
	}
}

// TestShutdown checks that on shutdown running calls finish and new ones are refused.
func TestShutdown(t *testing.T) {
	t.Parallel()
	began, release := make(chan struct{}), make(chan struct{})
	b, stop := open(t, hootserver.Options{Grace: time.Minute, Broadcast: "tcp://127.0.0.1:0", Source: toolFuncs{"hold": hold(began, nil, release), "echo": echo}})
	c := dial(t, b)
	r := rawDial(t, b)
	r.send(hootproto.New(hootproto.Ready, "").Frames())
	r.next()
	var held hootproto.Outcome
	var holding sync.WaitGroup
	holding.Go(func() { held = call(t, c, "hold", `{}`) })
	<-began
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	if f := r.next(); f.Command != hootproto.Disconnect {
		t.Errorf("it sent a %s", f.Command)
	}
	f, err := hootproto.New(hootproto.Request, "").With(hootproto.JSON, hootproto.Call{Name: "echo"})
	if err != nil {
		t.Fatal(err)
	}
	r.send(f.Frames())
	var refused hootproto.Outcome
	if err := r.next().Decode(&refused); err != nil || refused.Err == nil || refused.Err.Code != hootproto.CodeUnavailable || !refused.Err.Unexecuted() {
		t.Errorf("a call during shutdown: %+v, %v", refused, err)
	}
	close(release)
	if holding.Wait(); held.Err != nil || held.Output.Text != "released" {
		t.Errorf("the running call ended with %+v", held)
	}
	<-stopped
	_, err = c.Call(t.Context(), hootclient.ToolCall{ID: hootproto.NewID(), Name: "echo"})
	if !errors.Is(err, hootclient.ErrNotSent) {
		t.Errorf("a call after the end: %v", err)
	}
}
