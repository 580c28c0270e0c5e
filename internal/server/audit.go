package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// openAudit opens the audit log.
func (srv *Server) openAudit(ctx context.Context) (err error) {
	if !srv.config.Audit.Enabled {
		return nil
	}
	node := srv.config.NodeName()
	if srv.node != nil { // a node whose name is taken gets another
		node = srv.node.Name()
	}
	var export slog.Handler
	if srv.config.Audit.OTLP {
		export = srv.telemetry.Exported("audit")
	}
	srv.audit, err = audit.Open(ctx, srv.store, audit.Options{Node: node, Keep: time.Duration(srv.config.Audit.Keep), KeepOrgs: srv.config.Audit.KeepOrgs(), Export: export, Continue: srv.config.Audit.Failure == config.AuditContinue, Relay: tool.Ref{Name: "call_tool"}, Log: srv.log})
	if err == nil {
		srv.closeLast.within("the audit log", storeTimeout, srv.audit.Close)
	}
	return err
}

// auditStore returns the audit log for reading.
func (srv *Server) auditStore() (adminapi.Audit, error) {
	if srv.audit != nil {
		return srv.audit, nil
	}
	return audit.OpenStore(context.Background(), srv.store)
}

// auditKey records that a key was created or revoked.
func (srv *Server) auditKey(ctx context.Context, action, name string) {
	srv.auditAdmin(ctx, action, name, nil)
}

// auditAdmin records what an administrator did.
func (srv *Server) auditAdmin(ctx context.Context, action, subject string, detail []byte) {
	srv.audit.RecordAction(ctx, action, subject, detail)
}

// auditLogin records that a browser logged in or out, or was refused.
func (srv *Server) auditLogin(ctx context.Context, action, from string, allowed bool) {
	srv.audit.RecordLogin(ctx, action, from, allowed)
}
