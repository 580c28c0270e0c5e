package app

import (
	"bytes"
	"context"
	"os"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/access"
	"github.com/luanette/luanette/internal/admin"
	"github.com/luanette/luanette/internal/audit"
	"github.com/luanette/luanette/internal/event"
	"github.com/luanette/luanette/internal/fault"
	"github.com/luanette/luanette/internal/tool"
	"github.com/luanette/luanette/internal/wire"
)

// AuditConfig is about the log of who did what.
type AuditConfig struct {
	Enabled bool     `toml:"enabled" help:"keep a log of who called what; docs/audit.md"`
	Keep    Duration `toml:"keep" help:"how long its entries are kept; 0 is for ever"`
}

func defaultAudit() AuditConfig {
	return AuditConfig{Enabled: true, Keep: Duration(30 * 24 * time.Hour)}
}

func (c AuditConfig) check() error {
	if c.Keep < 0 {
		return fault.New(fault.Config, "audit.keep: entries cannot be kept for less than no time").WithHint("such as 720h, or 0 for ever")
	}
	return nil
}

// openAudit begins the log.
func (h *House) openAudit(ctx context.Context) (err error) {
	if !h.config.Audit.Enabled {
		return nil
	}
	node, _ := os.Hostname() // a machine without a name is "local"
	h.audit, err = audit.Open(ctx, h.store, audit.Options{Node: node, Keep: time.Duration(h.config.Audit.Keep), Log: h.log})
	return err
}

// auditStore is the log as it is read.
func (h *House) auditStore() (admin.Audit, error) {
	if h.audit != nil {
		return h.audit, nil
	}
	return audit.OpenStore(context.Background(), h.store)
}

// pass is what every call passes first: the policy decides, and the log keeps what
// became of it.
func (h *House) pass(ctx context.Context, info *tool.Info, call tool.Call, next func(context.Context, tool.Call) (tool.Result, error)) (tool.Result, error) {
	began := time.Now()
	ctx, decision, err := h.policy.Admit(ctx, info, call)
	if h.audit == nil {
		if err != nil {
			return tool.Result{}, err
		}
		return next(ctx, call)
	}
	e := h.entry(ctx, audit.Call, info.Ref.String(), call.Args)
	e.At, e.Decision, e.Rule = began, "allow", decision.Rule
	if call.Caller != nil {
		e.Client = call.Caller.ID
	}
	var result tool.Result
	if err != nil {
		e.Decision = "deny"
	} else {
		result, err = next(ctx, call)
	}
	e.Took, e.Size, e.Error = time.Since(began).Microseconds(), int64(len(result.Raw)), errorCode(result, err)
	h.audit.Record(e)
	return result, err
}

// turnedAway keeps a call of what is kept from who asks: a tool that its key does
// not see, or one that nobody has approved.
func (h *House) turnedAway(ctx context.Context, call tool.Call, why error) {
	if h.audit == nil {
		return
	}
	e := h.entry(ctx, audit.Call, call.Ref.String(), call.Args)
	e.Decision, e.Rule, e.Error = "deny", "key", string(fault.CodeOf(why))
	if fault.CodeOf(why) == fault.Denied {
		e.Rule = "trust"
	}
	if call.Caller != nil {
		e.Client = call.Caller.ID
	}
	h.audit.Record(e)
}

// errorCode names what went wrong, if anything.
func errorCode(result tool.Result, err error) string {
	switch {
	case err != nil:
		return string(fault.CodeOf(err))
	case bytes.Contains(result.Raw, []byte(`"isError"`)) && wire.GetBool(result.Raw, "isError"):
		return "tool_error"
	default:
		return ""
	}
}

// entry is about something that whoever ctx says does.
func (h *House) entry(ctx context.Context, action, subject string, args []byte) audit.Entry {
	p := access.Of(ctx)
	e := audit.Entry{Who: p.ID, Name: p.Name, Client: p.User, Action: action, Subject: subject, Args: audit.Digest(args)}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		e.Trace, e.Request = span.TraceID().String(), span.SpanID().String()
	}
	return e
}

// auditEvents keeps what administrators did that is told on the bus, until ctx ends.
func (h *House) auditEvents(ctx context.Context) {
	sub := h.bus.Subscribe(event.Options{Types: []string{"key.*"}})
	defer sub.Close()
	keep := func(e event.Event) {
		if about, ok := e.Data.(event.Keyed); ok {
			h.did(ctx, e.Type, about.EventKey(), nil)
		}
	}
	for e := range sub.All(ctx) {
		keep(e)
	}
	for e, ok := sub.Poll(); ok; e, ok = sub.Poll() { // what was said last
		keep(e)
	}
}

// did keeps what an administrator did.
func (h *House) did(ctx context.Context, action, subject string, detail []byte) {
	if h.audit != nil {
		e := h.entry(ctx, action, subject, detail)
		e.Decision = "allow"
		h.audit.Record(e)
	}
}
