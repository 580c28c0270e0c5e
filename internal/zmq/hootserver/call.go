package hootserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/zmq/hootproto"
)

// request begins a call, or says at once why not.
func (b *Server) request(ctx context.Context, p *peer, f hootproto.Message) {
	if b.leaving.Load() {
		b.refuse(ctx, f, &hootproto.ToolError{Code: hootproto.CodeUnavailable, Message: "the backend is about to end", Hint: "call again", Details: hootproto.Unexecuted})
		return
	}
	raw, err := f.JSON()
	if err != nil {
		b.refuse(ctx, f, &hootproto.ToolError{Code: hootproto.CodeInvalidParams, Message: err.Error(), Hint: "bodies are JSON or MessagePack, see docs/backends.md"})
		return
	}
	if id, ok := hootproto.ReadCancel(raw); ok {
		found := p.callOff(id)
		b.answer(ctx, func() (hootproto.Message, error) { return cancelled(f, id, found) })
		return
	}
	life, done, err := p.begin(ctx, f.ID)
	switch {
	case errors.Is(err, errDuplicate): // its one answer is on its way
		b.opts.Log.DebugContext(ctx, "a call of that id is under way already", "id", f.ID.String())
		return
	case err != nil:
		b.refuse(ctx, f, &hootproto.ToolError{Code: hootproto.CodeLimit, Message: err.Error(), Hint: "wait until some have ended", Details: hootproto.Unexecuted})
		return
	}
	b.calls.Go(func() {
		defer done()
		outcome := b.run(life, f, raw)
		answer, err := f.Answer(hootproto.Reply).With(f.Content, outcome)
		if err != nil {
			answer, err = f.Answer(hootproto.Reply).With(f.Content, failure(err))
		}
		if err == nil {
			err = b.send(ctx, answer)
		}
		if err != nil {
			b.opts.Log.DebugContext(ctx, "a reply was lost", "error", err)
		}
	})
}

// refuse answers a request without doing anything.
func (b *Server) refuse(ctx context.Context, f hootproto.Message, why *hootproto.ToolError) {
	content := f.Content
	if content != hootproto.MsgPack {
		content = hootproto.JSON
	}
	b.answer(ctx, func() (hootproto.Message, error) {
		return f.Answer(hootproto.Reply).With(content, hootproto.Outcome{Err: why})
	})
}

// cancelled answers who called something off.
func cancelled(f hootproto.Message, id hootproto.ID, found bool) (hootproto.Message, error) {
	text := "no call " + id.String() + " is under way"
	if found {
		text = "called off " + id.String()
	}
	data, err := json.Marshal(map[string]bool{"cancelled": found})
	if err != nil {
		return f, err
	}
	return f.Answer(hootproto.Reply).With(f.Content, hootproto.Outcome{Output: hootproto.ToolOutput{Text: text, Data: data}})
}

// run makes the call that a body asks for, in the trace it belongs to.
func (b *Server) run(ctx context.Context, f hootproto.Message, body json.RawMessage) (outcome hootproto.Outcome) {
	var call hootproto.Call
	if err := json.Unmarshal(body, &call); err != nil {
		return failure(fault.Wrap(fault.InvalidParams, err, "read request").
			WithHint(`a request is {"type":"tool_call","name":…,"arguments":{…}}`))
	}
	ctx = b.opts.Propagator.Extract(ctx, propagation.MapCarrier{"traceparent": f.Traceparent})
	ctx, span := b.opts.Tracer.Start(ctx, "tool_call "+call.Name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("rpc.system", "hoot01"), attribute.String("luanette.service", b.opts.Name),
		attribute.String("gen_ai.tool.name", call.Name), attribute.String("luanette.request_id", f.ID.String()),
	))
	defer func() {
		if fallen := recover(); fallen != nil {
			b.opts.Log.ErrorContext(ctx, "a tool panicked", "tool", call.Name, "panic", fmt.Sprint(fallen), "stack", string(debug.Stack()))
			outcome = failure(fault.New(fault.Internal, "tool %s broke down", call.Name))
		}
		if outcome.Err != nil {
			span.SetStatus(codes.Error, outcome.Err.Message)
			span.SetAttributes(attribute.String("error.type", outcome.Err.Code))
		}
		span.End()
	}()
	ref, err := b.index.find(ctx, b.opts.Source, call.Name)
	if err != nil {
		return failure(err)
	}
	result, err := b.opts.Source.Call(ctx, tool.Call{Ref: ref, Args: call.Arguments, Caller: b.caller(ctx, f)})
	if err != nil {
		return failure(orCause(ctx, err))
	}
	return outcomeOf(result)
}

// orCause is why ctx ended, when that is what err is about.
func orCause(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return fault.Wrap(fault.Cancelled, context.Cause(ctx), "")
	}
	return err
}

// caller is the front end while its call runs: what is said to it goes out as
// broadcasts that name the request.
func (b *Server) caller(ctx context.Context, f hootproto.Message) *tool.Caller {
	c := &tool.Caller{ID: "zmq:" + b.opts.Name}
	if b.pub == nil {
		return c
	}
	c.Progress = func(p tool.Progress) { b.broadcast(ctx, progressOf(f.ID.String(), p)) }
	c.Log = func(l tool.Log) {
		b.broadcast(ctx, hootproto.Log{Level: l.Level, Message: plainText(l.Data), Source: l.Logger, JobID: f.ID.String()})
	}
	return c
}

// progressOf says how far a call has come.
func progressOf(id string, p tool.Progress) hootproto.Progress {
	said := hootproto.Progress{JobID: id, Message: p.Message, Percent: p.Progress}
	if p.Total > 0 {
		said.Percent = p.Progress / p.Total
	}
	if p.Total > 0 && p.Total != 1 || p.Progress > 1 {
		said.Done, said.Total = p.Progress, p.Total
	}
	said.Percent = min(max(said.Percent, 0), 1)
	return said
}

// plainText is a JSON string's text, or other JSON as it is.
func plainText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}
