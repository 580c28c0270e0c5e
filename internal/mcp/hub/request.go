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
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// The causes with which a request's context is cancelled.
var (
	errCancelled    = fault.New(fault.Cancelled, "request cancelled by the client")
	errDisconnected = fault.New(fault.Cancelled, "client closed the connection")
	errSessionEnded = fault.New(fault.Cancelled, "session ended")
	errClosing      = fault.New(fault.Unavailable, "server is shutting down")
)

// request is one JSON-RPC request that is being served. It runs in the goroutine of its
// HTTP request where it can, otherwise in one of its own. It sends to its client
// through its response; while a request of the modern era waits for the client's input,
// it has none.
type request struct {
	ep      *endpoint
	method  string
	params  json.RawMessage // as the client sent them
	meta    json.RawMessage // their _meta, or nil
	name    string          // of the tool or prompt, or the resource's uri; may be empty
	menu    string          // the list of tools that the client asked for, or empty
	era     wire.Era
	version string
	caps    json.RawMessage // the capabilities that the client declared
	who     string
	session *session // nil for the modern era over HTTP
	began   time.Time
	header  http.Header // the headers with trace context, or nil
	network string      // network.transport of the span: tcp or pipe

	// supplied are the inputResponses that came with the request.
	supplied json.RawMessage

	cancel   context.CancelCauseFunc // nil until it begins
	finished chan struct{}           // closed when it has run or was refused; made by start

	mu            sync.Mutex
	response      *response // nil while it waits for input
	progressLimit progressLimit
	questions     *questionSets // made when first needed
}

// isNew tells whether the request has not begun to run.
func (req *request) isNew() bool { return req.cancel == nil }

type requestKey struct{}

// Release closes the connection on which a client waits for the answer to a call. The
// client reconnects after the given time and reads the answer then. Release does
// nothing if the client cannot do that, or without Options.Releases. ctx is that of the
// tool's call.
func Release(ctx context.Context, after time.Duration) {
	req, ok := ctx.Value(requestKey{}).(*request)
	if !ok || req.version < wire.Revision2511 {
		return
	}
	if resp := req.current(); resp != nil && resp.out.name != "" && !resp.jsonOnly {
		resp.out.disconnect(after)
	}
}

// start runs the request in a goroutine of its own. The request has the values of ctx
// but not its lifetime: the caller cancels it when the client no longer wants it.
func (req *request) start(ctx context.Context, resp *response) {
	req.finished = make(chan struct{})
	ctx, begun := req.begin(context.WithoutCancel(ctx), resp)
	if !begun { // it was answered
		close(req.finished)
		return
	}
	go req.run(ctx)
}

// begin registers the request and returns the context to run it with. If that is not
// possible, it answers with an error and returns false.
func (req *request) begin(ctx context.Context, resp *response) (context.Context, bool) {
	if req.ep.hub.opts.Releases {
		ctx = context.WithValue(ctx, requestKey{}, req)
	}
	if req.menu != "" {
		ctx = tool.WithMenu(ctx, req.menu)
	}
	ctx, req.cancel = context.WithCancelCause(ctx)
	req.response = resp
	req.began = time.Now()
	if req.session != nil {
		if err := req.session.begin(resp.id, req); err != nil {
			req.cancel(context.Canceled)
			resp.finish(nil, err, false)
			return nil, false
		}
	}
	h := req.ep.hub
	h.mu.Lock()
	closed := h.closed
	if !closed {
		h.requests[req] = struct{}{}
		h.work.Add(1)
	}
	h.mu.Unlock()
	if closed {
		req.cancel(context.Canceled)
		req.finish(nil, errClosing, false)
	}
	return ctx, !closed
}

func (req *request) run(ctx context.Context) {
	defer func() {
		if req.finished != nil {
			close(req.finished)
		}
		req.cancel(context.Canceled)
		h := req.ep.hub
		h.mu.Lock()
		delete(h.requests, req)
		h.mu.Unlock()
		h.work.Done()
	}()
	ctx, finish := req.ep.hub.observe(ctx, req)
	result, err := req.answer(ctx)
	if err == nil {
		result = req.completeResult(result)
	} else {
		err = req.adapt(ctx, err)
	}
	finish(result, err)
	req.finish(result, err, errors.Is(context.Cause(ctx), errCancelled))
}

// answer computes the result. A panic becomes an error of this one request.
func (req *request) answer(ctx context.Context) (result json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			req.ep.hub.log.ErrorContext(ctx, "panic in a request", "method", req.method, "name", req.name,
				"panic", p, "stack", string(debug.Stack()))
			result, err = nil, fault.New(fault.Internal, "%s failed unexpectedly", req.method)
		}
	}()
	return req.ep.answer(ctx, req)
}

// finish answers the current response, if there is one.
func (req *request) finish(result json.RawMessage, err error, silent bool) {
	req.mu.Lock()
	resp := req.response
	req.response = nil
	req.mu.Unlock()
	if resp == nil {
		return
	}
	if req.session != nil {
		req.session.finish(resp.id)
	}
	resp.finish(result, err, silent)
}

// send sends a message to the client before the answer, and tells whether the client can
// receive it.
func (req *request) send(m wire.Message, must bool) bool {
	resp := req.current()
	if resp == nil || resp.jsonOnly {
		return false
	}
	resp.send(m.Append(nil), must)
	return true
}

func (req *request) current() *response {
	req.mu.Lock()
	defer req.mu.Unlock()
	return req.response
}

// disconnected is called when the HTTP request of a response ends before the answer. It
// cancels the request, unless the client can reconnect to read the answer. ctx is that
// of the HTTP request; the request is cancelled in any case if the key was revoked.
func (req *request) disconnected(ctx context.Context, resp *response) {
	if req.current() != resp {
		return
	}
	if why := context.Cause(ctx); fault.CodeOf(why) == fault.Denied {
		req.cancel(why)
		return
	}
	primed := req.version >= wire.Revision2511 || resp.out.position() > 0
	if resp.out.name != "" && resp.isStreaming() && primed {
		return // the client has an event id to reconnect with
	}
	req.cancel(errDisconnected)
}

func (req *request) isWaitingForInput() bool { return req.current() == nil }
