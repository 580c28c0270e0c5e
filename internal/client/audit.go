package client

import (
	"context"

	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/store/db"
)

// recordAudit writes one entry to the audit log for an action that a command did
// without a server.
func recordAudit(ctx context.Context, store *db.DB, loaded *config.Loaded, action, subject string) error {
	if !loaded.Audit.Enabled {
		return nil
	}
	log, err := audit.Open(ctx, store, audit.Options{Node: loaded.NodeName()})
	if err != nil {
		return err
	}
	who := principal.Of(ctx)
	log.Record(ctx, audit.Draft{Who: who.ID, Name: who.Name, Client: who.User, Action: action, Subject: subject, Args: audit.Digest(nil), Decision: "allow"})
	return log.Close(ctx)
}
