package server

import (
	"context"

	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/credentials/oauth"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/ui/login"
)

// newLogins returns the service that logs in to upstreams.
func (srv *Server) newLogins() *login.Service {
	o := login.ServiceOptions{
		Manager: srv.upstreams.Manager, Hidden: upstreamset.IsPrivate, RedirectURL: srv.redirectURL, Audit: srv.audit.RecordAction, Go: srv.runBackground, Log: srv.log,
	}
	if srv.people != nil {
		o.Session = srv.people.Session
	}
	return login.NewService(srv.logins, o)
}

// watchLogins connects upstreams for which a login was stored elsewhere: by the
// command line, or on another node.
func (srv *Server) watchLogins(ctx context.Context) {
	srv.runBackground(func(ctx context.Context) { // a login may have been stored just before the upstream began to wait
		sub := srv.bus.Subscribe(event.Options{Types: []string{"upstream.needs_auth"}, Mode: event.Latest})
		defer sub.Close()
		for range sub.All(ctx) {
			_ = srv.loginService.Check(ctx) // polling checks again
		}
	})
	srv.runBackground(srv.logins.RunRevocations)
	srv.poll(ctx, oauth.Topic, srv.loginService.Check)
}
