package server

import (
	"context"
	"errors"

	"github.com/luanette/luanette/internal/access/people"
	"github.com/luanette/luanette/internal/access/signin"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/credentials/oauth"
	"github.com/luanette/luanette/internal/credentials/personal"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
)

// rekey encrypts stored secrets with the first line of oauth.key, if it has others, and says when
// that is done: then the others are not needed any more.
func (srv *Server) rekey() {
	box := secret.Box{Key: srv.storedKey()}
	if !box.Replaces() {
		return
	}
	srv.runBackground(func(ctx context.Context) {
		changed, err := srv.resealAll(ctx, box)
		if err != nil {
			srv.log.WarnContext(ctx, "stored secrets not encrypted with the first line of oauth.key, trying again at the next start", "error", err)
			return
		}
		srv.log.InfoContext(ctx, "stored secrets are encrypted with the first line of oauth.key", "changed", changed)
	})
}

func (srv *Server) resealAll(ctx context.Context, box secret.Box) (changed int, failed error) {
	columns := append(oauth.Sealed(), personal.Sealed(), upstreamstore.Sealed())
	if srv.people != nil {
		columns = append(columns, people.Sealed(), signin.Sealed())
	}
	for _, column := range columns {
		count, err := column.Reseal(ctx, srv.store, box)
		changed, failed = changed+count, errors.Join(failed, err)
	}
	count, err := srv.turns.Servers.Reseal(ctx)
	return changed + count, errors.Join(failed, err)
}
