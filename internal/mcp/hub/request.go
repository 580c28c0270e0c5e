package hub

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// Reasons for which a task's context is cancelled.
var (
	errCancelled    = fault.New(fault.Cancelled, "request cancelled by the client")
	errDisconnected = fault.New(fault.Cancelled, "client closed the connection")
	errSessionEnded = fault.New(fault.Cancelled, "session ended")
	errClosing      = fault.New(fault.Unavailable, "server is shutting down")
)

// request is one request being worked on. It runs in a goroutine of its own, or in
// that of its HTTP request when it surely needs it no longer than that, and talks
// to its client through its round: while a task of the modern era waits for
// answers, it has none.
type request struct {
	ep      *endpoint
	method  string
	params  json.RawMessage // as the client sent them
	meta    json.RawMessage // their _meta, or nil
	name    string          // of the tool or prompt, or the resource's uri; may be empty
	era     wire.Era
	version string
	caps    json.RawMessage // what the client declared it can do
	who     string
	session *session // nil for the modern era over HTTP
	began   time.Time
	header  http.Header // those with trace context, or nil
	network string      // network.transport of the span: tcp or pipe

	// supplied are answers that came with the request before anything was asked.
	supplied json.RawMessage

	cancel   context.CancelCauseFunc // nil until it begins
	finished chan struct{}           // closed when it ran; made by start, for others to wait for

	mu            sync.Mutex
	response      *response // nil while parked
	progressLimit progressLimit
	questions     *questionSets // made when first needed
}

// isNew tells that the task has not begun.
func (t *request) isNew() bool { return t.cancel == nil }

type requestKey struct{}

// Release lets go of the connection a call's answer is awaited on, when its
// client knows how to come back for it after the time given; otherwise nothing
// happens. A tool that is going to take long may call it with its context.
func Release(ctx context.Context, after time.Duration) {
	t, ok := ctx.Value(requestKey{}).(*request)
	if !ok || t.version < wire.Revision2511 {
		return
	}
	if rd := t.current(); rd != nil && rd.out.name != "" && !rd.jsonOnly {
		rd.out.disconnect(after)
	}
}

// start runs the task in a goroutine of its own and settles its round in the end.
// ctx gives values, not its lifetime: who starts a task cancels it when its client
// is no longer interested.
func (t *request) start(ctx context.Context, rd *response) {
	t.finished = make(chan struct{})
	if ctx, ok := t.begin(context.WithoutCancel(ctx), rd); ok {
		go t.run(ctx)
	}
}

// begin prepares the task to run, with the context it returns, which ends with ctx.
// Where that cannot be its round is settled.
func (t *request) begin(ctx context.Context, rd *response) (context.Context, bool) {
	if t.ep.hub.opts.Releases {
		ctx = context.WithValue(ctx, requestKey{}, t)
	}
	ctx, t.cancel = context.WithCancelCause(ctx)
	t.response = rd
	t.began = time.Now()
	if t.session != nil {
		if err := t.session.begin(rd.id, t); err != nil {
			t.cancel(context.Canceled)
			rd.finish(nil, err, false)
			return nil, false
		}
	}
	h := t.ep.hub
	h.mu.Lock()
	closed := h.closed
	if !closed {
		h.requests[t] = struct{}{}
		h.work.Add(1)
	}
	h.mu.Unlock()
	if closed {
		t.cancel(context.Canceled)
		t.finish(nil, errClosing, false)
	}
	return ctx, !closed
}

func (t *request) run(ctx context.Context) {
	defer func() {
		if t.finished != nil {
			close(t.finished)
		}
		t.cancel(context.Canceled)
		h := t.ep.hub
		h.mu.Lock()
		delete(h.requests, t)
		h.mu.Unlock()
		h.work.Done()
	}()
	ctx, finish := t.ep.hub.observe(ctx, t)
	result, err := t.answer(ctx)
	if err == nil {
		result = t.completeResult(result)
	} else {
		err = t.adapt(ctx, err)
	}
	finish(result, err)
	t.finish(result, err, errors.Is(context.Cause(ctx), errCancelled))
}

// answer works the request out. A panic below is our mistake and becomes an
// error of this one request.
func (t *request) answer(ctx context.Context) (result json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			t.ep.hub.log.ErrorContext(ctx, "panic in a request", "method", t.method, "name", t.name,
				"panic", p, "stack", string(debug.Stack()))
			result, err = nil, fault.New(fault.Internal, "%s failed unexpectedly", t.method)
		}
	}()
	return t.ep.answer(ctx, t)
}

// finish answers the current round; without one there is nobody to tell.
func (t *request) finish(result json.RawMessage, err error, silent bool) {
	t.mu.Lock()
	rd := t.response
	t.response = nil
	t.mu.Unlock()
	if rd == nil {
		return
	}
	if t.session != nil {
		t.session.finish(rd.id)
	}
	rd.finish(result, err, silent)
}

// send sends a message to the client before the answer, if there is one listening.
func (t *request) send(m wire.Message, must bool) bool {
	rd := t.current()
	if rd == nil || rd.jsonOnly {
		return false
	}
	rd.send(m.Append(nil), must)
	return true
}

func (t *request) current() *response {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.response
}

// disconnected is told when the request of a round, whose ctx is given, is over before it was
// answered. Whoever cannot get the answer any more does not need it, and whose rights
// are over shall not have it.
func (t *request) disconnected(ctx context.Context, rd *response) {
	if t.current() != rd {
		return
	}
	if why := context.Cause(ctx); fault.CodeOf(why) == fault.Denied {
		t.cancel(why)
		return
	}
	primed := t.version >= wire.Revision2511 || rd.out.position() > 0
	if rd.out.name != "" && rd.isStreaming() && primed {
		return // the client has an event id to come back with
	}
	t.cancel(errDisconnected)
}

func (t *request) isWaitingForInput() bool { return t.current() == nil }
