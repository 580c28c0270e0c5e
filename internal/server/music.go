package server

import (
	"context"
	"errors"
	"net"

	"github.com/luanette/luanette/internal/base/httpserver"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/jobs/musicjob"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/observe/telemetry"
)

// BuildMusic builds a server with the music backend only, for its own process.
func BuildMusic(ctx context.Context, config *config.Loaded, options Options) (*Server, error) {
	p, _, err := newProcess(ctx, config, options, event.New(event.BusOptions{}), telemetry.Options{Service: hootenanny.Space})
	if err != nil {
		return nil, err
	}
	srv := &Server{process: p}
	if addr, err := net.ResolveTCPAddr("tcp", config.Listen); err == nil { // the server in front serves the contents
		srv.listening.Store(httpserver.URL(addr))
	}
	if err := srv.buildMusic(ctx); err != nil {
		return nil, errors.Join(err, srv.Close(ctx))
	}
	return srv, nil
}

func (srv *Server) buildMusic(ctx context.Context) error {
	a, err := openAccess(ctx, srv.process, nil, nil)
	if err != nil {
		return err
	}
	shares, err := openShares(ctx, srv.process, a)
	if err != nil {
		return err
	}
	srv.guards = &guards{access: a, shares: shares}
	contents, err := openContents(ctx, srv.process, shares, nil) // no quota: there are no organisations
	if err != nil {
		return err
	}
	srv.storage = &storage{contents: contents}
	if srv.localMusic, err = srv.musicBackend(ctx); err != nil {
		return err
	}
	if err := srv.openJobs(ctx); err != nil {
		return err
	}
	srv.localMusic.SetJobs(musicjob.Queue{Jobs: srv.jobs})
	return nil
}

// ServeMusic serves the music tools over ZeroMQ until ctx ends, then closes the
// server.
func (srv *Server) ServeMusic(ctx context.Context, listen, broadcast string) error {
	return srv.ServeBackend(ctx, Backend{Name: hootenanny.Space, Listen: listen, Broadcast: broadcast, Source: srv.localMusic.Tools()})
}

// isMusic reports whether a namespace is that of the music tools.
func isMusic(namespace string) bool { return namespace == hootenanny.Space }
