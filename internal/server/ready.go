package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/store/db"
)

// probeTimeout bounds how long the database may take to say that it is there.
const probeTimeout = 2 * time.Second

// ready tells load balancers whether to send requests here: 200 once everything
// is in place and the database answers, else 503 with the reason. It says no from
// the moment the process is told to stop, while all that comes is still served.
func (srv *Server) ready(w http.ResponseWriter, r *http.Request) {
	if why := srv.notReady(r.Context()); why != "" {
		w.Header().Set("Retry-After", "1")
		httpjson.JSON(w, http.StatusServiceUnavailable, map[string]any{"ready": false, "reason": why})
		return
	}
	httpjson.JSON(w, http.StatusOK, map[string]any{"ready": true})
}

// notReady is why nothing should be sent here now, or "". Tables are up to date by
// the time there is a door to ask at.
func (srv *Server) notReady(ctx context.Context) string {
	if srv.draining.Load() {
		return "draining"
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var one int
	err := srv.store.Read(ctx, func(tx *db.Tx) error { return tx.QueryRow(ctx, "SELECT 1").Scan(&one) })
	if err != nil {
		return "the database does not answer: " + string(fault.CodeOf(err))
	}
	return ""
}

// linger goes on serving for a while after the process was told to stop, so that
// load balancers see that it is not ready before anybody is turned away.
func (srv *Server) linger(ctx context.Context) {
	srv.draining.Store(true)
	srv.announceDrain(ctx)
	if wait := time.Duration(srv.config.Linger); wait > 0 {
		srv.log.InfoContext(ctx, "leaving: not ready, and serving what still comes", "for", wait)
		time.Sleep(wait)
	}
}

// drain lets calls and turns under way finish, ends the streams of clients, which
// would stay open as long as the clients want, and takes nothing new. Jobs are not
// waited for: they go on where they are, here after the restart or on another node.
func (srv *Server) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(srv.config.Drain))
	defer cancel()
	var all sync.WaitGroup
	if srv.conversations != nil {
		all.Go(func() {
			if left := srv.conversations.Drain(ctx); left > 0 {
				srv.log.WarnContext(ctx, "messages are left to be answered later", "count", left)
			}
		})
	}
	all.Go(func() {
		if err := srv.hub.Close(ctx); err != nil {
			srv.log.WarnContext(ctx, "calls were cut short", "error", err)
		}
	})
	all.Wait()
}
