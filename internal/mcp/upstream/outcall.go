package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// outcall is a request to a server, before a session gives it an id and _meta.
type outcall struct {
	method    string
	params    json.RawMessage // _meta in them is ignored
	meta      json.RawMessage // the caller's _meta, or nil
	trace     traceContext
	label     *spanLabel   // nil if it is not known yet
	about     string       // the tool, prompt or resource, if known
	caller    *tool.Caller // may be nil
	headers   []Header
	timeout   time.Duration // without progress
	maxTime   time.Duration // in total; zero means timeout
	task      bool          // it may start a task, or is about one
	taskTTL   time.Duration // of the task it may start; zero: not said
	handshake bool          // its result is returned unchanged, and it is never cancelled

	sentOver *session // the last one; nil: it was not sent
	id       wire.ID  // in that session
	failed   bool     // the result of the tool has isError set
}

// outgoing encodes the request with its id and with the _meta of this hop. params
// are those of this round.
func (s *session) outgoing(r *outcall, id wire.ID, params json.RawMessage) Outgoing {
	bare := wire.Request(id, r.method, nil)
	text := bare.Append(make([]byte, 0, s.encodedSize(r, params)))
	text = append(text[:len(text)-1], `,"params":`...)
	start := len(text)
	text = s.appendParams(text, r, id, params)
	end := len(text)
	rawjson.Flatten(text[start:end])
	text = append(text, '}')
	out := Outgoing{Message: wire.Request(id, r.method, text[start:end:end]), Encoded: text, About: r.about}
	if s.endpoint.usesHeaders() {
		out.Headers = append(r.trace.headers(r.meta), r.headers...)
	}
	return out
}

// encodedSize is an upper estimate for most requests.
func (s *session) encodedSize(r *outcall, params json.RawMessage) int {
	size := len(params) + len(r.meta) + 256
	if s.era == wire.Modern && r.caller != nil {
		size += len(r.caller.Capabilities) + 256
	}
	return size
}

// appendParams writes params with _meta: the caller's keys that concern the
// server, and our own.
func (s *session) appendParams(out []byte, r *outcall, id wire.ID, params json.RawMessage) []byte {
	out = rawjson.AppendMembers(out, params, func(key []byte) bool { return string(key) == "_meta" })
	bare := len(out)
	out = rawjson.AppendKey(out, "_meta")
	start := len(out)
	out = rawjson.AppendMembers(out, r.meta, func(key []byte) bool {
		return string(key) == wire.MetaProgressToken || wire.IsProtocol(key) || r.trace.replaces(key)
	})
	out = r.trace.append(out)
	if r.caller != nil {
		out = append(rawjson.AppendKey(out, wire.MetaProgressToken), id...)
	}
	if s.era == wire.Modern {
		out = s.appendProtocol(out, r)
	}
	if len(out) == start+1 { // only the opening brace
		return append(out[:bare], '}')
	}
	return append(out, "}}"...)
}

// appendProtocol writes the _meta keys that every modern request has.
func (s *session) appendProtocol(out []byte, r *outcall) []byte {
	out = rawjson.AppendText(rawjson.AppendKey(out, wire.MetaRevision), s.revision)
	out = append(rawjson.AppendKey(out, wire.MetaClientInfo), s.connection.clientInfo...)
	out = append(rawjson.AppendKey(out, wire.MetaClientCapabilities), s.declaredFor(r)...)
	if r.caller != nil && r.caller.Log != nil {
		out = rawjson.AppendText(rawjson.AppendKey(out, wire.MetaLogLevel), s.logLevel())
	}
	return out
}

// spanLabel is the name and the attributes of a request's spans.
type spanLabel struct {
	name       string
	attributes []attribute.KeyValue
	listed     bool // it is of a tool that the server lists
}

// newSpanLabel makes the label of a method's requests; about may be empty.
func newSpanLabel(upstream, method, about string) *spanLabel {
	label := &spanLabel{name: method, attributes: append(make([]attribute.KeyValue, 0, 4),
		attribute.String("mcp.method.name", method), attribute.String("luanette.upstream", upstream))}
	if about != "" {
		label.name += " " + about
		label.attributes = appendSubject(label.attributes, method, about)
	}
	label.attributes = slices.Clip(label.attributes) // spans share them
	return label
}

// asClient are the options of all spans: making them for each would take memory.
var asClient = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient)}

// startSpan starts the client span of a request, whose context the request passes
// to the server. The span is nil without a tracer.
func (c *connection) startSpan(ctx context.Context, r *outcall) (context.Context, trace.Span) {
	if c.opts.Tracer == nil {
		return ctx, nil
	}
	if r.label == nil {
		r.label = newSpanLabel(c.name, r.method, r.about)
	}
	ctx, span := c.opts.Tracer.Start(ctx, r.label.name, asClient...)
	span.SetAttributes(r.label.attributes...)
	if c.opts.Propagator != nil {
		c.opts.Propagator.Inject(ctx, &r.trace)
	}
	return ctx, span
}

// endSpan ends the span of a request with its outcome, and with the server that the
// request was last sent to.
func (r *outcall) endSpan(span trace.Span, err error) {
	if span == nil {
		return
	}
	if s := r.sentOver; s != nil && span.IsRecording() {
		span.SetAttributes(s.spanAttributes()...)
		span.SetAttributes(attribute.String("jsonrpc.request.id", string(r.id)))
	}
	switch {
	case err != nil:
		span.SetStatus(codes.Error, err.Error())
		span.SetAttributes(attribute.String("error.type", errorType(err)))
	case r.failed:
		span.SetStatus(codes.Error, "the tool failed")
		span.SetAttributes(attribute.String("error.type", toolFailed))
	}
	span.End()
}

// toolFailed is the error.type of a tool that answered with an error.
const toolFailed = "tool_error"

// appendSubject adds the tool, prompt or resource that a request is about.
func appendSubject(attributes []attribute.KeyValue, method, about string) []attribute.KeyValue {
	switch method {
	case wire.MethodToolsCall:
		return append(attributes, attribute.String("gen_ai.tool.name", about), attribute.String("gen_ai.operation.name", "execute_tool"))
	case wire.MethodPromptsGet:
		return append(attributes, attribute.String("gen_ai.prompt.name", about))
	case wire.MethodResourcesRead:
		return append(attributes, attribute.String("mcp.resource.uri", about))
	}
	return attributes
}

func errorType(err error) string {
	var answered *wire.Error
	if errors.As(err, &answered) {
		return strconv.FormatInt(answered.Code, 10)
	}
	return string(fault.CodeOf(err))
}

// traceContext is the trace context that a request carries. It implements
// OpenTelemetry's TextMapCarrier.
type traceContext [len(traceKeys)]string

var traceKeys = [...]string{wire.MetaTraceParent, wire.MetaTraceState, wire.MetaBaggage}

// Get returns the value of a key, or "".
func (c *traceContext) Get(key string) string {
	if i := slices.Index(traceKeys[:], key); i >= 0 {
		return c[i]
	}
	return ""
}

// Set stores the value of a key. Keys other than W3C's are ignored, because MCP
// does not carry them.
func (c *traceContext) Set(key, text string) {
	if i := slices.Index(traceKeys[:], key); i >= 0 {
		c[i] = text
	}
}

// Keys lists the keys that have a value.
func (c *traceContext) Keys() []string {
	return slices.DeleteFunc(slices.Clone(traceKeys[:]), func(key string) bool { return c.Get(key) == "" })
}

// replaces reports whether the caller's value of a key is left out, because there
// is a span of ours.
func (c *traceContext) replaces(key []byte) bool {
	switch string(key) {
	case wire.MetaTraceParent, wire.MetaTraceState, wire.MetaBaggage:
		return c[0] != ""
	}
	return false
}

// append writes it as members of a _meta object.
func (c *traceContext) append(out []byte) []byte {
	for i, text := range c {
		if text != "" {
			out = rawjson.AppendText(rawjson.AppendKey(out, traceKeys[i]), text)
		}
	}
	return out
}

// headers returns it as HTTP headers as well, for servers that look there. Without
// a span of ours they carry the caller's trace context.
func (c *traceContext) headers(meta json.RawMessage) (list []Header) {
	for i, key := range traceKeys {
		text := c[i]
		if c[0] == "" && !rawjson.Lacks(meta, key) {
			text, _ = rawjson.GetText(meta, key)
		}
		if text != "" && wire.EncodeHeader(text) == text {
			list = append(list, Header{key, text})
		}
	}
	return list
}

// Causes of a call's context when the server took too long.
var (
	errNoProgress = errors.New("no answer and no progress in time")
	errMaxTime    = errors.New("not finished within the maximum time, despite progress")
)

// callTimeout bounds a call: limit without progress, and until end in total.
type callTimeout struct {
	cancel   context.CancelCauseFunc
	detach   func() bool // stops watching the caller's context; nil: it ends with that
	timer    *time.Timer
	limit    time.Duration
	end      time.Time
	extended atomic.Bool // there was progress, or a question to the caller
}

// startCallTimeout returns the context of a call. It ends with parent, with the timeout, or by
// cancel. If it outlives the call, it does not end when the call succeeds and parent ends after
// that. The caller calls stop.
func startCallTimeout(parent context.Context, limit, total time.Duration, outlives bool) (context.Context, *callTimeout) {
	t := &callTimeout{limit: limit, end: time.Now().Add(total)}
	within := parent
	if outlives {
		within = context.WithoutCancel(parent)
	}
	ctx, cancel := context.WithCancelCause(within)
	if t.cancel = cancel; outlives {
		t.detach = context.AfterFunc(parent, func() { cancel(context.Cause(parent)) })
	}
	t.timer = time.AfterFunc(limit, t.expire)
	return ctx, t
}

func (t *callTimeout) expire() {
	if t.extended.Load() && !time.Now().Before(t.end) {
		t.cancel(errMaxTime)
	} else {
		t.cancel(errNoProgress)
	}
}

// stop releases the timer and the caller's context. It cancels the context of a
// call that failed, so that nothing keeps running for it.
func (t *callTimeout) stop(failed bool) {
	t.timer.Stop()
	if t.detach != nil {
		t.detach()
	}
	if failed || t.detach == nil {
		t.cancel(context.Canceled)
	}
}

// extend restarts the limit, after progress or after the caller's reply.
func (t *callTimeout) extend() { t.reset(t.limit) }

// pause lets only the total time count, while the caller is asked.
func (t *callTimeout) pause() { t.reset(time.Until(t.end)) }

func (t *callTimeout) reset(limit time.Duration) {
	t.extended.Store(true)
	t.timer.Reset(min(limit, time.Until(t.end)))
}
