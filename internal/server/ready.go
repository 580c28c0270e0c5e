package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
)

// probeTimeout limits how long the database may take to respond.
const probeTimeout = 2 * time.Second

// ready tells load balancers whether to send requests here: 200 if the database responds
// and can be written, else 503 with the reason. During shutdown it answers 503, while requests are still
// served.
func (srv *Server) ready(w http.ResponseWriter, r *http.Request) {
	if why := srv.notReady(r.Context()); why != "" {
		w.Header().Set("Retry-After", "1")
		httpjson.JSON(w, http.StatusServiceUnavailable, map[string]any{"ready": false, "reason": why})
		return
	}
	httpjson.JSON(w, http.StatusOK, map[string]any{"ready": true})
}

// notReady returns why no request should be sent here, or "". Migrations are done before
// the server listens.
func (srv *Server) notReady(ctx context.Context) string {
	if srv.draining.Load() {
		return "draining"
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if err := srv.store.CheckReadable(ctx); err != nil {
		return "the database does not answer: " + string(fault.CodeOf(err))
	}
	if err := srv.store.CheckWritable(ctx); err != nil {
		return err.Error()
	}
	return ""
}

// delayShutdown keeps serving for a while after the stop signal, so that load balancers
// see that the server is not ready before it refuses requests.
func (srv *Server) delayShutdown(ctx context.Context) {
	srv.draining.Store(true)
	srv.node.AnnounceDrain(ctx)
	if wait := time.Duration(srv.config.ShutdownDelay); wait > 0 {
		srv.log.InfoContext(ctx, "shutting down: not ready, still serving", "for", wait)
		time.Sleep(wait)
	}
}

// drain lets running calls and chat turns finish, ends the streams of clients and accepts
// nothing new. It does not wait for jobs: they resume after the restart or on another
// node.
func (srv *Server) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(srv.config.Drain))
	defer cancel()
	var all sync.WaitGroup
	if srv.conversations != nil {
		all.Go(func() {
			if left := srv.conversations.Drain(ctx); left > 0 {
				srv.log.WarnContext(ctx, "messages left to answer after the restart", "count", left)
			}
		})
	}
	all.Go(func() {
		if err := srv.hub.Close(ctx); err != nil {
			srv.log.WarnContext(ctx, "calls ended early", "error", err)
		}
	})
	all.Wait()
}
