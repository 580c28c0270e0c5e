package server

import (
	"context"
	"sync"
	"time"
)

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
	if srv.turns != nil {
		all.Go(func() {
			if left := srv.turns.Drain(ctx); left > 0 {
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
