package hootserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/zmq/hootproto"
)

// request starts a call, or refuses it.
func (s *Server) request(ctx context.Context, p *peer, f hootproto.Message) {
	if s.stopping.Load() {
		s.refuse(ctx, f, &hootproto.ToolError{Code: hootproto.CodeUnavailable, Message: "the backend is shutting down", Hint: "retry the call", Details: hootproto.Unexecuted})
		return
	}
	raw, err := f.JSON()
	if err != nil {
		s.refuse(ctx, f, &hootproto.ToolError{Code: hootproto.CodeInvalidParams, Message: err.Error(), Hint: "bodies must be JSON or MessagePack, see docs/backends.md"})
		return
	}
	if id, ok := hootproto.ReadCancel(raw); ok {
		found := p.cancelCall(id)
		s.answer(ctx, func() (hootproto.Message, error) { return cancelled(f, id, found) })
		return
	}
	life, done, err := p.begin(ctx, f.ID)
	switch {
	case errors.Is(err, errDuplicate): // its only reply follows
		s.opts.Log.DebugContext(ctx, "duplicate call", "id", f.ID.String())
		return
	case err != nil:
		s.refuse(ctx, f, &hootproto.ToolError{Code: hootproto.CodeLimit, Message: err.Error(), Hint: "wait until other calls have ended", Details: hootproto.Unexecuted})
		return
	}
	s.calls.Go(func() {
		defer done()
		outcome := s.run(life, f, raw)
		answer, err := f.Answer(hootproto.Reply).With(f.Content, outcome)
		if err != nil {
			answer, err = f.Answer(hootproto.Reply).With(f.Content, failure(err))
		}
		if err == nil {
			err = s.send(ctx, answer)
		}
		if err != nil {
			s.opts.Log.DebugContext(ctx, "reply lost", "error", err)
		}
	})
}

// refuse answers a request with an error.
func (s *Server) refuse(ctx context.Context, f hootproto.Message, why *hootproto.ToolError) {
	content := f.Content
	if content != hootproto.MsgPack {
		content = hootproto.JSON
	}
	s.answer(ctx, func() (hootproto.Message, error) {
		return f.Answer(hootproto.Reply).With(content, hootproto.Outcome{Err: why})
	})
}

// cancelled is the reply to a Cancel.
func cancelled(f hootproto.Message, id hootproto.ID, found bool) (hootproto.Message, error) {
	text := "no call " + id.String() + " is running"
	if found {
		text = "cancelled " + id.String()
	}
	data, err := json.Marshal(map[string]bool{"cancelled": found})
	if err != nil {
		return f, err
	}
	return f.Answer(hootproto.Reply).With(f.Content, hootproto.Outcome{Output: hootproto.ToolOutput{Text: text, Data: data}})
}

// run executes the call in a request's body, in the client's trace.
func (s *Server) run(ctx context.Context, f hootproto.Message, body json.RawMessage) (outcome hootproto.Outcome) {
	var call hootproto.Call
	if err := json.Unmarshal(body, &call); err != nil {
		return failure(fault.Wrap(fault.InvalidParams, err, "read request").
			WithHint(`a request is {"type":"tool_call","name":…,"arguments":{…}}`))
	}
	ctx = s.opts.Propagator.Extract(ctx, propagation.MapCarrier{"traceparent": f.Traceparent})
	ctx, span := s.opts.Tracer.Start(ctx, "tool_call "+call.Name, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("rpc.system", "hoot01"), attribute.String("luanette.service", s.opts.Name),
		attribute.String("gen_ai.tool.name", call.Name), attribute.String("luanette.request_id", f.ID.String()),
	))
	defer func() {
		if cause := recover(); cause != nil {
			s.opts.Log.ErrorContext(ctx, "tool panicked", "tool", call.Name, "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
			outcome = failure(fault.New(fault.Internal, "tool %s panicked", call.Name))
		}
		if outcome.Err != nil {
			span.SetStatus(codes.Error, outcome.Err.Message)
			span.SetAttributes(attribute.String("error.type", outcome.Err.Code))
		}
		span.End()
	}()
	ref, err := s.index.find(ctx, s.opts.Source, call.Name)
	if err != nil {
		return failure(err)
	}
	var broadcasts atomic.Int64
	result, err := s.opts.Source.Call(ctx, tool.Call{Ref: ref, Args: call.Arguments, Caller: s.caller(ctx, f, &broadcasts)})
	if err != nil {
		outcome = failure(err)
	} else {
		outcome = outcomeOf(result)
	}
	if outcome.Err != nil && ctx.Err() != nil { // whatever the tool made of it
		outcome = failure(fault.Wrap(fault.Cancelled, context.Cause(ctx), ""))
	}
	outcome.Broadcasts = int(broadcasts.Load())
	return outcome
}

// caller is the client of a call. Progress and log messages for it are broadcast
// with the id of the request, and counted.
func (s *Server) caller(ctx context.Context, f hootproto.Message, broadcasts *atomic.Int64) *tool.Caller {
	c := &tool.Caller{ID: "zmq:" + s.opts.Name}
	if s.pub == nil {
		return c
	}
	broadcast := func(message hootproto.Broadcast) {
		broadcasts.Add(1)
		s.Broadcast(ctx, message)
	}
	c.Progress = func(p tool.Progress) { broadcast(progressOf(f.ID.String(), p)) }
	c.Log = func(l tool.Log) {
		broadcast(hootproto.Log{Level: l.Level, Message: plainText(l.Data), Source: l.Logger, JobID: f.ID.String()})
	}
	return c
}

// progressOf returns the broadcast for the progress of a call.
func progressOf(id string, p tool.Progress) hootproto.Progress {
	message := hootproto.Progress{JobID: id, Message: p.Message, Percent: p.Progress}
	if p.Total > 0 {
		message.Percent = p.Progress / p.Total
	}
	if p.Total > 0 && p.Total != 1 || p.Progress > 1 {
		message.Done, message.Total = p.Progress, p.Total
	}
	message.Percent = min(max(message.Percent, 0), 1)
	return message
}

// plainText returns the text of a JSON string, or other JSON unchanged.
func plainText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// outcomeOf is a tool's result in the format of the protocol.
func outcomeOf(result tool.Result) hootproto.Outcome {
	view, err := result.View()
	if err != nil {
		return failure(err)
	}
	if view.IsError {
		return hootproto.Outcome{Err: toolError(view)}
	}
	output := hootproto.ToolOutput{Text: view.Text()}
	if string(view.Structured) != "null" {
		output.Data = view.Structured
	}
	for _, block := range view.Content {
		if a, ok := attachment(block); ok {
			output.Attachments = append(output.Attachments, a)
		}
	}
	return hootproto.Outcome{Output: output}
}

// toolError is the error of a failed tool: the structured error in its metadata, or
// its text.
func toolError(view tool.View) *hootproto.ToolError {
	var meta map[string]json.RawMessage
	var found hootproto.ToolError
	if json.Unmarshal(view.Meta, &meta) == nil && json.Unmarshal(meta[tool.ErrorKey], &found) == nil && found.Code != "" {
		return &found
	}
	details := view.Structured
	if string(details) == "null" {
		details = nil
	}
	return &hootproto.ToolError{Code: codeFailed, Message: view.Text(), Details: details}
}

// codeFailed is the code of a tool that failed without giving one.
const codeFailed = "tool_failed"

// failure is an error in the format of the protocol.
func failure(err error) hootproto.Outcome {
	f := fault.From(err)
	return hootproto.Outcome{Err: &hootproto.ToolError{
		Code: string(f.Code), Message: cmp.Or(f.Error(), string(f.Code)), Hint: fault.HintOf(f), Details: f.Details,
	}}
}

// attachment converts a content block other than text.
func attachment(raw json.RawMessage) (a hootproto.Attachment, ok bool) {
	type meta struct {
		Name string `json:"luanette/name"` // as our client of backends writes it
	}
	var block struct {
		Type, MimeType, URI, Name string
		Data                      []byte
		Meta                      meta `json:"_meta"`
		Resource                  struct {
			URI, MimeType, Text string
			Blob                []byte
			Meta                meta `json:"_meta"`
		}
	}
	if json.Unmarshal(raw, &block) != nil {
		return a, false
	}
	switch block.Type {
	case "image", "audio":
		return hootproto.Attachment{MimeType: block.MimeType, Data: block.Data, Name: block.Meta.Name}, true
	case "resource_link":
		return hootproto.Attachment{MimeType: block.MimeType, URI: block.URI, Name: block.Name}, true
	case "resource":
		r := block.Resource
		return hootproto.Attachment{MimeType: r.MimeType, URI: r.URI, Text: r.Text, Data: r.Blob, Name: r.Meta.Name}, true
	}
	return a, false
}

// wireName replaces characters that names on the wire cannot have: they consist of
// letters, digits, _ and -.
func wireName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}

// index maps the names of tools on the wire to tools of the source. The name is
// the tool's own unless two namespaces have the same one.
type index struct {
	mu   sync.Mutex
	of   []tool.Info
	refs map[string]tool.Ref
	list []hootproto.Tool
}

// find returns the tool with that name. It lists the source's tools only if the
// name is unknown; for a removed tool the source returns an error itself.
func (x *index) find(ctx context.Context, source tool.Source, name string) (tool.Ref, error) {
	if ref, ok := x.known(name); ok {
		return ref, nil
	}
	if err := x.refresh(ctx, source); err != nil {
		return tool.Ref{}, err
	}
	if ref, ok := x.known(name); ok {
		return ref, nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	unknown := fault.New(fault.ToolNotFound, "no tool %q", name)
	if close := suggest.Names(name, slices.Sorted(maps.Keys(x.refs)), 3); len(close) > 0 {
		return tool.Ref{}, unknown.WithHint("did you mean %s?", strings.Join(close, " or "))
	}
	return tool.Ref{}, unknown.WithHint("Ready returns the list of tools")
}

func (x *index) known(name string) (tool.Ref, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	ref, ok := x.refs[name]
	return ref, ok
}

// tools returns the entries of the catalog.
func (x *index) tools(ctx context.Context, source tool.Source) ([]hootproto.Tool, error) {
	err := x.refresh(ctx, source)
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.list, err
}

// refresh updates the index if the source's list has changed.
func (x *index) refresh(ctx context.Context, source tool.Source) error {
	infos, err := source.Tools(ctx)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.refs != nil && len(infos) == len(x.of) && (len(infos) == 0 || &infos[0] == &x.of[0]) {
		return nil
	}
	x.of, x.refs, x.list = infos, make(map[string]tool.Ref, len(infos)), make([]hootproto.Tool, 0, len(infos))
	for _, info := range infos {
		name := wireName(info.Name)
		if _, taken := x.refs[name]; taken {
			name = wireName(info.Space + "__" + info.Name)
		}
		if _, taken := x.refs[name]; taken {
			continue
		}
		x.refs[name] = info.Ref
		x.list = append(x.list, entry(name, info))
	}
	return nil
}

// entry is a tool in the format of the protocol.
func entry(name string, info tool.Info) hootproto.Tool {
	return hootproto.Tool{
		Name: name, Title: info.Title, Description: info.Description,
		InputSchema: info.Input, OutputSchema: info.Output,
		ReadOnly: info.Hints.ReadOnly, Idempotent: info.Hints.Idempotent,
		Destructive: !info.Hints.ReadOnly && !info.Hints.NonDestructive,
		ClosedWorld: info.Hints.ClosedWorld,
	}
}

// ready is the answer to Ready: the catalog.
func (s *Server) ready(ctx context.Context, f hootproto.Message) (hootproto.Message, error) {
	tools, err := s.index.tools(ctx, s.opts.Source)
	if err != nil {
		return f, err
	}
	content := f.Content
	if content != hootproto.MsgPack { // a message without a body has no content type
		content = hootproto.JSON
	}
	answer := f.Answer(hootproto.Ready)
	answer.Service = s.opts.Name
	return answer.With(content, hootproto.Catalog{
		Protocol: hootproto.Hoot01, Protocols: hootproto.Protocols(), Tools: tools, Broadcasts: s.Broadcasts(), AcceptsCancel: true,
		AcceptsMsgPack: s.opts.OfferMsgPack,
	})
}

// announceChanges sends the new catalog to every client that has asked for one
// whenever the tools change.
func (s *Server) announceChanges(ctx context.Context) {
	for {
		select {
		case <-s.opts.ToolsChanged: // never, when it is nil
		case <-ctx.Done():
			return
		}
		for _, address := range s.peers.addresses() {
			message := hootproto.New(hootproto.Ready, s.opts.Name)
			message.Identity, message.Protocol = address.identity, address.protocol
			s.answer(ctx, func() (hootproto.Message, error) { return s.ready(ctx, message) })
		}
	}
}
