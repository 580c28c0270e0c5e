package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/apps"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// The causes with which a request's context is cancelled.
var (
	errCancelled    = fault.New(fault.Cancelled, "request cancelled by the client")
	errDisconnected = fault.New(fault.Cancelled, "client closed the connection")
	errSessionEnded = fault.New(fault.Cancelled, "session ended")
	errClosing      = fault.New(fault.Unavailable, "server is shutting down")
)

// request is one JSON-RPC request that is being served. It sends to its client through its
// response. How it came decides who runs it and who writes the response:
//
//	how it came              run by                          response written by
//	HTTP, a tool's call      its HTTP handler (inlineRun)    its HTTP handler; once a message comes before the
//	                                                         answer or it takes long, a goroutine (inlineRun.write)
//	HTTP, any other          a goroutine of its own (start)  its HTTP handler (Hub.writeResponse)
//	HTTP, initialize         a goroutine of its own (start)  its HTTP handler (openSession), as JSON
//	stdio, HTTP+SSE          a goroutine of its own (start)  whoever writes the session's only stream
//	input it has waited for  as it came first                the HTTP handler that brought the input (resume)
//
// begin registers it, run computes the answer, and finish hands the answer to the response,
// each once. The client cancels it with notifications/cancelled in the sessions era. Over HTTP
// it is cancelled when its client disconnects (disconnected), unless the client can reconnect to
// read the answer. While a request of the modern era waits for the client's input it has no
// response, and only the deadline of the question ends it. Closing the hub and the end of the
// session cancel everything.
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
	ctx = display{req.menu, apps.Declared(req.caps)}.in(ctx)
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

// runsInline tells whether the request can run in the goroutine of its HTTP request: it
// is a tool call that cannot outlive it. A call of the modern era can if it asks its
// client for input, which comes with another HTTP request; any call can if its tool may
// call Release.
func (req *request) runsInline() bool {
	if req.method != wire.MethodToolsCall || req.ep.hub.opts.Releases {
		return false
	}
	if req.era == wire.Legacy {
		return true
	}
	return rawjson.Lacks(req.caps, "elicitation") && rawjson.Lacks(req.caps, "sampling") && rawjson.Lacks(req.caps, "roots")
}

// serve runs the request and writes its response. It avoids a second goroutine where it
// can, since waking it and being woken by it cost more than the rest of most calls.
func (s *inlineRun) serve() {
	h, w, r, req, resp := s.hub, s.w, s.r, s.request, s.response
	if !req.runsInline() {
		req.start(r.Context(), resp)
		if h.writeResponse(w, r, resp, s.prime, s.started) {
			req.disconnected(r.Context(), resp)
		}
		return
	}
	if !resp.jsonOnly {
		resp.beforeSend = s.open
		defer time.AfterFunc(h.opts.Limits.Quiet, s.open).Stop()
	}
	if ctx, ok := req.begin(context.WithoutCancel(r.Context()), resp); ok {
		stop := context.AfterFunc(r.Context(), func() { req.disconnected(r.Context(), resp) })
		req.run(ctx)
		stop()
	}
	if !resp.isStreaming() {
		writeJSON(w, resp.status, resp.answer)
		return
	}
	s.open()
	<-s.done
}

// inlineRun serves one request in the goroutine of its HTTP request. A second goroutine
// writes the response as a stream if a message comes before the answer, or if the answer
// takes long.
type inlineRun struct {
	hub      *Hub
	w        http.ResponseWriter
	r        *http.Request
	request  *request
	response *response
	prime    bool
	started  func()
	once     sync.Once
	done     chan struct{} // made by open, closed when the stream is written
}

func (s *inlineRun) open() {
	s.once.Do(func() {
		s.done = make(chan struct{})
		go s.write()
	})
}

func (s *inlineRun) write() {
	defer close(s.done)
	if s.response.beginStream() && s.hub.writeStream(s.w, s.r, s.response, s.prime, s.started) {
		s.request.disconnected(s.r.Context(), s.response)
	}
}

// caller is the client as a tool sees it.
func (req *request) caller() *tool.Caller {
	c := &tool.Caller{User: req.who, Capabilities: req.caps, Stateless: req.era == wire.Modern}
	if req.who != "" {
		c.ID = "user:" + req.who
	}
	if req.session != nil && req.era == wire.Legacy {
		c.ID, c.Client, c.Agent = req.session.name, req.session, req.session.agent
	} else {
		info, _ := rawjson.Get(req.meta, wire.MetaClientInfo)
		c.Agent = agentOf(info)
	}
	resp := req.current()
	if resp == nil {
		return c
	}
	if resp.token != nil {
		c.Progress = req.progress
	}
	if resp.level != levelNone {
		c.Log = req.log
	}
	if req.canAsk() {
		c.Ask = req.ask
	}
	return c
}

// progressLimit lets only increasing progress through, and limits its rate.
type progressLimit struct {
	last   float64
	begun  bool
	tokens float64
	at     time.Time
}

// admit tells whether a report may be sent now. The last report of a call with a known
// total always may.
func (p *progressLimit) admit(now time.Time, report tool.Progress, perSecond int) bool {
	if p.begun && !(report.Progress > p.last) {
		return false
	}
	burst := float64(perSecond) / 2
	if !p.begun {
		p.tokens = burst
	} else {
		p.tokens = min(burst, p.tokens+now.Sub(p.at).Seconds()*float64(perSecond))
	}
	p.at = now
	finished := report.Total > 0 && report.Progress >= report.Total
	if p.begun && p.tokens < 1 && !finished {
		return false
	}
	p.begun, p.last = true, report.Progress
	p.tokens--
	return true
}

// progress sends a report with the client's progress token.
func (req *request) progress(report tool.Progress) {
	if math.IsNaN(report.Progress) || math.IsInf(report.Progress, 0) {
		return
	}
	req.mu.Lock()
	resp := req.response
	ok := resp != nil && resp.token != nil && req.progressLimit.admit(time.Now(), report, req.ep.hub.opts.Limits.Progress)
	req.mu.Unlock()
	if !ok {
		return
	}
	params := append([]byte(`{"progressToken":`), resp.token...)
	params = appendNumber(append(params, `,"progress":`...), report.Progress)
	if report.Total > 0 && !math.IsInf(report.Total, 0) {
		params = appendNumber(append(params, `,"total":`...), report.Total)
	}
	if report.Message != "" {
		params = rawjson.AppendText(append(params, `,"message":`...), report.Message)
	}
	req.send(wire.Notification(wire.NoteProgress, append(params, '}')), false)
}

func appendNumber(dst []byte, n float64) []byte {
	return strconv.AppendFloat(dst, n, 'g', -1, 64)
}

// level is the severity of a log message, or the least severity to be sent.
type level int32

// levels are MCP's names, the least severe first.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

const (
	levelInfo level = 1
	levelNone level = 100 // no message is that severe
)

func parseLevel(name string) (level, bool) {
	i := slices.Index(levels, name)
	return level(i), i >= 0
}

// log sends a log message if the client wants its level. An unknown level counts as info.
func (req *request) log(entry tool.Log) {
	resp := req.current()
	if resp == nil {
		return
	}
	at, known := parseLevel(entry.Level)
	if !known {
		entry.Level, at = "info", levelInfo
	}
	want := resp.level
	if req.session != nil && req.era == wire.Legacy {
		want = level(req.session.level.Load())
	}
	if at < want {
		return
	}
	req.send(wire.Notification(wire.NoteMessage, logParams(entry)), false)
}

func logParams(entry tool.Log) json.RawMessage {
	params := rawjson.AppendText([]byte(`{"level":`), entry.Level)
	if entry.Logger != "" {
		params = rawjson.AppendText(append(params, `,"logger":`...), entry.Logger)
	}
	data := entry.Data
	if len(data) == 0 {
		data = json.RawMessage("null")
	}
	return append(append(append(params, `,"data":`...), data...), '}')
}

// cacheable tells whether results of a method say how long they may be cached, in the
// modern era.
func cacheable(method string) bool {
	switch method {
	case wire.MethodDiscover, wire.MethodToolsList, wire.MethodPromptsList, wire.MethodResourcesList,
		wire.MethodResourceTemplates, wire.MethodResourcesRead, wire.MethodSkillsList, wire.MethodSkillsGet:
		return true
	}
	return false
}

// resultKeys are the keys of a result that belong to an era.
var resultKeys = []string{"resultType", "ttlMs", "cacheScope", "_meta"}

// completeResult gives a result the form of the client's era. In the modern era it has
// its type, the server's name and how long it may be cached; in the sessions era it has
// none of them. Everything else stays as it is, byte for byte.
func (req *request) completeResult(result json.RawMessage) json.RawMessage {
	var has [4]json.RawMessage
	rawjson.Pick(result, resultKeys, has[:])
	if req.era == wire.Legacy {
		return req.completeLegacy(result, has)
	}
	add := make([]byte, 0, 256)
	if has[0] == nil {
		add = append(add, `"resultType":"complete",`...)
	}
	if cacheable(req.method) {
		// Nothing may be cached: lists change with the upstreams and differ between
		// callers.
		if has[1] == nil {
			add = append(add, `"ttlMs":0,`...)
		}
		if has[2] == nil {
			add = append(add, `"cacheScope":"private",`...)
		}
	}
	if has[3] != nil {
		result = req.ep.setServerInfo(result)
	} else if info := req.ep.serverInfo(); info != nil {
		add = append(append(append(add, `"_meta":{"`+wire.MetaServerInfo+`":`...), info...), `},`...)
	}
	return prepend(result, add)
}

func (req *request) completeLegacy(result json.RawMessage, has [4]json.RawMessage) json.RawMessage {
	if has[0] != nil {
		result = rawjson.DeleteFunc(result, func(key []byte) bool { return slices.Contains(resultKeys[:3], string(key)) })
	}
	if has[3] != nil && req.method != wire.MethodTasksResult { // its _meta names the task
		result = wire.StripProtocol(result)
	}
	return result
}

// prepend puts members, each followed by a comma, before those of an object.
func prepend(object json.RawMessage, members []byte) json.RawMessage {
	if len(members) == 0 {
		return object
	}
	rest := bytes.TrimLeft(object, " \t\r\n")[1:]
	out := append(make([]byte, 0, 1+len(members)+len(rest)), '{')
	out = append(out, members...)
	if bytes.TrimLeft(rest, " \t\r\n")[0] == '}' {
		out = out[:len(out)-1] // no member follows the last comma
	}
	return append(out, rest...)
}

// setServerInfo sets the server's name in the _meta of a modern result, in place of what
// an upstream set.
func (e *endpoint) setServerInfo(result json.RawMessage) json.RawMessage {
	meta := rawjson.DeleteFunc(wire.Meta(result), func(key []byte) bool {
		return string(key) != wire.MetaSubscription && wire.IsProtocol(key)
	})
	if info := e.serverInfo(); info != nil {
		meta = rawjson.Set(meta, wire.MetaServerInfo, info)
	}
	return wire.SetMeta(result, meta)
}

// adapt gives an error the code of the client's era.
func (req *request) adapt(ctx context.Context, err error) error {
	if ctx.Err() != nil && fault.CodeOf(err) == fault.Cancelled {
		err = context.Cause(ctx)
	}
	e := *wire.ErrorFrom(err)
	switch {
	case e.Code == 0:
		e.Code = wire.CodeInternal
	case req.era == wire.Modern && e.Code == wire.CodeResourceNotFound:
		e.Code = wire.CodeInvalidParams
	case req.era == wire.Modern && e.Code == wire.CodeURLElicitationMissing:
		e.Code = wire.CodeInternal
	case req.method == wire.MethodResourcesRead && fault.CodeOf(err) == fault.NotFound:
		e.Data = rawjson.SetText(e.Data, "uri", req.name)
		if req.era == wire.Legacy {
			e.Code = wire.CodeResourceNotFound
		}
	}
	if e.Code == wire.CodeInternal && ctx.Err() == nil {
		req.ep.hub.log.WarnContext(ctx, "request failed", "method", req.method, "name", req.name, "error", err)
	}
	return &e
}

// toolFailure turns the error of a tool call into a result with isError, which the model
// can read. Protocol errors, unknown tools and cancellation stay errors.
func toolFailure(ctx context.Context, name string, err error) (json.RawMessage, error) {
	var protocol *wire.Error
	switch {
	case errors.As(err, &protocol), ctx.Err() != nil:
		return nil, err
	case fault.CodeOf(err) == fault.ToolNotFound:
		e := wire.ErrorFrom(err)
		e.Message = "Unknown tool: " + name
		if hint := fault.HintOf(err); hint != "" { // few clients show more than the message
			e.Message += "; " + hint
		}
		return nil, e
	}
	return tool.Failure(err).Raw, nil
}
