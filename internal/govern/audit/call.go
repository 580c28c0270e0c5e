package audit

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/sandbox/egress"
)

// RecordCalls records every tool call, refused ones too, with the arguments as the
// caller sent them. A nil log records nothing.
func (l *Log) RecordCalls() tool.Step {
	if l == nil {
		return tool.Step{Name: "audit"}
	}
	return tool.Step{Name: "audit", Before: l.begin, After: l.recordCall}
}

// admit refuses calls that cannot be recorded: while entries cannot be written, those of
// tools that may change something, and all once the queue is full, since callers would
// wait for the disk.
func (l *Log) admit(ctx context.Context, i *tool.Invocation) (context.Context, error) {
	full, err := l.failing()
	if !l.refuses(i, full, err) {
		return ctx, nil
	}
	l.retryNow(ctx) // the disk may have space again
	if full, err = l.failing(); !l.refuses(i, full, err) {
		return ctx, nil
	}
	refusal := fault.Wrap(fault.Unavailable, err, "%s is not called, because the audit log cannot be written", i.Info.Ref).
		WithHint("%s", cmp.Or(fault.HintOf(err), "see the log of the server; audit.on_failure chooses what happens to calls"))
	if !full {
		i.Denied, i.Rule, i.Err = true, "audit", refusal
		l.recordCall(ctx, i)
	}
	return ctx, refusal
}

// refuses reports whether a call is refused for the reason why entries cannot be written.
func (l *Log) refuses(i *tool.Invocation, full bool, err error) bool {
	harmless := i.Info.Hints.ReadOnly || i.Info.Ref.IsRelay()
	return err != nil && !l.options.Continue && (full || !harmless)
}

// begin is admit, and lets what the call does know that it is part of it.
func (l *Log) begin(ctx context.Context, i *tool.Invocation) (context.Context, error) {
	ctx, err := l.admit(ctx, i)
	if err == nil && !i.Relayed { // a relayed call makes none, and has the span of its request
		ctx = tool.WithCall(ctx, trace.SpanContextFromContext(ctx).SpanID())
	}
	return ctx, err
}

// failing returns why entries cannot be written, or nil, and whether at the same moment no
// more are accepted without waiting.
func (l *Log) failing() (full bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.accepted-l.settled >= l.options.Queue, l.failure
}

// actions are those of entries about other calls than those of tools.
var actions = map[tool.Kind]string{tool.ReadsResource: "read", tool.GetsPrompt: "prompt"}

func (l *Log) recordCall(ctx context.Context, i *tool.Invocation) {
	e := newEntry(ctx, cmp.Or(actions[i.Call.Kind], Call), i.Info.Ref.String(), i.Args)
	if i.Call.Caller != nil {
		e.Client, e.Agent = i.Call.Caller.ID, i.Call.Caller.Agent
	}
	e.At, e.Decision, e.Rule = i.Began, "allow", i.Rule
	switch {
	case i.Denied:
		e.Decision = "deny"
	case i.Asked:
		e.Decision = "ask" // the call that follows the decision has an entry of its own
	}
	e.Took, e.Size, e.Error = i.Took.Microseconds(), int64(len(i.Result.Raw)), errorCode(i.Result, i.Err)
	e.Activity = l.activityOf(ctx, i)
	l.Record(ctx, e)
}

// errorCode names what went wrong, if anything.
func errorCode(result tool.Result, err error) string {
	switch {
	case err != nil:
		return string(fault.CodeOf(err))
	case rawjson.GetBool(result.Raw, "isError"):
		return "tool_error"
	default:
		return ""
	}
}

// RecordAction records what an administrator did. A nil log records nothing.
func (l *Log) RecordAction(ctx context.Context, action, subject string, detail []byte) {
	if l != nil {
		e := newEntry(ctx, action, subject, detail)
		e.Decision = "allow"
		l.Record(ctx, e)
	}
}

// RecordLogin records that a browser logged in or out, or was refused. A nil log
// records nothing.
func (l *Log) RecordLogin(ctx context.Context, action, from string, allowed bool) {
	if l == nil {
		return
	}
	e := newEntry(ctx, action, from, nil)
	if e.Decision = "allow"; !allowed {
		e.Decision, e.Error = "deny", string(fault.Denied)
	}
	l.Record(ctx, e)
}

// RecordDelivery records a request to a webhook; refusal is why it was refused, or "". A
// nil log records nothing.
func (l *Log) RecordDelivery(ctx context.Context, hook string, body []byte, refusal string) {
	if l == nil {
		return
	}
	e := newEntry(ctx, "webhook", hook, body)
	if e.Decision = "allow"; refusal != "" {
		e.Decision, e.Rule, e.Error = "deny", refusal, string(fault.NeedsAuth)
	}
	l.Record(ctx, e)
}

// newEntry is an entry about what the principal of ctx does. It holds a digest of the
// arguments, because their memory may be used again after the call.
func newEntry(ctx context.Context, action, subject string, args []byte) Entry {
	p := principal.Of(ctx)
	e := Entry{
		Who: p.ID, Name: p.Name, Org: p.Org, For: cmp.Or(p.Person, p.User), By: p.Client, Grant: p.Grant, Client: p.User,
		Action: action, Subject: subject, Args: Digest(args),
	}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		e.Trace, e.Request = span.TraceID().String(), span.SpanID().String()
	}
	return e
}

// Connect is the action of an entry about a connection of a sandboxed program.
const Connect = "connect"

// RecordConnection records a connection of a sandboxed program, refused ones too. Its
// size is what was sent and received. A nil log records nothing.
func (l *Log) RecordConnection(c egress.Connection) {
	if l == nil {
		return
	}
	e := Entry{
		At: c.Started, Who: "upstream:" + c.Server, Name: c.Server, Client: c.Address, Action: Connect, Subject: c.Destination(),
		Decision: "allow", Rule: c.Rule, Size: c.Sent + c.Received, Took: (time.Duration(c.TookMS) * time.Millisecond).Microseconds(),
	}
	switch c.Outcome {
	case egress.Refused:
		e.Decision, e.Rule, e.Error = "deny", "network", string(fault.Denied)
	case egress.Failed:
		e.Error = string(fault.Unavailable)
	}
	l.Record(context.Background(), e) // it belongs to no request; a log that is closed waits for nothing
}
