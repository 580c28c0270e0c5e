package server

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/access/apikey"
	"github.com/luanette/luanette/internal/access/audit"
	"github.com/luanette/luanette/internal/access/policy"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// openAudit begins the log.
func (srv *Server) openAudit(ctx context.Context) (err error) {
	if !srv.config.Audit.Enabled {
		return nil
	}
	node := srv.config.NodeName()
	if srv.node != nil { // of two by the same name one has another
		node = srv.node.Name()
	}
	srv.audit, err = audit.Open(ctx, srv.store, audit.Options{Node: node, Keep: time.Duration(srv.config.Audit.Keep), Log: srv.log})
	return err
}

// auditStore is the log as it is read.
func (srv *Server) auditStore() (adminapi.Audit, error) {
	if srv.audit != nil {
		return srv.audit, nil
	}
	return audit.OpenStore(context.Background(), srv.store)
}

// pass is what every call passes first: the policy decides, and the log keeps what
// became of it.
func (srv *Server) pass(ctx context.Context, info *tool.Info, call tool.Call, next func(context.Context, tool.Call) (tool.Result, error)) (tool.Result, error) {
	began := time.Now()
	ctx, decision, err := srv.admit(ctx, info, call)
	if srv.audit == nil {
		if err != nil {
			return tool.Result{}, err
		}
		return next(ctx, call)
	}
	d := deed(ctx, audit.Call, info.Ref.String(), call.Args)
	d.At, d.Decision, d.Rule = began, "allow", decision.Rule
	if call.Caller != nil {
		d.Client = call.Caller.ID
	}
	var result tool.Result
	if err != nil {
		d.Decision = "deny"
	} else {
		result, err = next(ctx, call)
	}
	d.Took, d.Size, d.Error = time.Since(began).Microseconds(), int64(len(result.Raw)), errorCode(result, err)
	srv.audit.Record(d)
	return result, err
}

// admit decides about a call: who makes it must still be somebody, for what they
// began may outlive their key, and the policy must allow it.
func (srv *Server) admit(ctx context.Context, info *tool.Info, call tool.Call) (context.Context, policy.Decision, error) {
	if err := srv.ring.Check(principal.Of(ctx).ID); err != nil {
		return ctx, policy.Decision{Verdict: policy.Deny, Rule: "key"}, err
	}
	return srv.policy.Admit(ctx, info, call)
}

// standingFlow refuses what else scripts do to those whose key is over.
type standingFlow struct {
	*policy.Policy
	ring *apikey.Store
}

// Check is asked before an effect happens.
func (f standingFlow) Check(ctx context.Context, e host.Effect) error {
	if !strings.HasPrefix(e.Name, "mcp.") { // calls of tools are admitted where all are, and kept in the log there
		if err := f.ring.Check(principal.Of(ctx).ID); err != nil {
			return err
		}
	}
	return f.Policy.Check(ctx, e)
}

// turnedAway keeps a call of what is kept from who asks: a tool that its key does
// not see, or one that nobody has approved.
func (srv *Server) turnedAway(ctx context.Context, call tool.Call, why error) {
	if srv.audit == nil {
		return
	}
	d := deed(ctx, audit.Call, call.Ref.String(), call.Args)
	d.Decision, d.Rule, d.Error = "deny", "key", string(fault.CodeOf(why))
	if fault.CodeOf(why) == fault.Denied {
		d.Rule = "trust"
	}
	if call.Caller != nil {
		d.Client = call.Caller.ID
	}
	srv.audit.Record(d)
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

// deed is something that whoever ctx says does. The arguments' memory may be used
// for another call after this one, so their digest is made here.
func deed(ctx context.Context, action, subject string, args []byte) audit.Draft {
	p := principal.Of(ctx)
	d := audit.Draft{Who: p.ID, Name: p.Name, Client: p.User, Action: action, Subject: subject, Args: audit.Digest(args)}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		d.Trace, d.Request = span.TraceID(), span.SpanID()
	}
	return d
}

// didKey keeps that a key was made or revoked.
func (srv *Server) didKey(ctx context.Context, action, name string) { srv.did(ctx, action, name, nil) }

// loggedIn keeps who came in by a browser or left, and who was not let in.
func (srv *Server) loggedIn(ctx context.Context, action, from string, allowed bool) {
	if srv.audit == nil {
		return
	}
	d := deed(ctx, action, from, nil)
	if d.Decision = "allow"; !allowed {
		d.Decision, d.Error = "deny", string(fault.Denied)
	}
	srv.audit.Record(d)
}

// didAlone keeps one thing that was done without a house, by a command.
func didAlone(ctx context.Context, store *db.DB, config *config.Loaded, action, subject string) error {
	if !config.Audit.Enabled {
		return nil
	}
	log, err := audit.Open(ctx, store, audit.Options{Node: config.NodeName()})
	if err != nil {
		return err
	}
	srv := Server{audit: log}
	srv.did(ctx, action, subject, nil)
	return log.Close(ctx)
}

// did keeps what an administrator did.
func (srv *Server) did(ctx context.Context, action, subject string, detail []byte) {
	if srv.audit != nil {
		d := deed(ctx, action, subject, detail)
		d.Decision = "allow"
		srv.audit.Record(d)
	}
}
