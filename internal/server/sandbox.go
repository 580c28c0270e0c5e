package server

import (
	"github.com/luanette/luanette/internal/sandbox/egress"
	"github.com/luanette/luanette/internal/sandbox/launch"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// launcher starts sandboxed programs, of upstreams and of scripts. What they are refused is
// an event.
func (srv *Server) launcher() *launch.Launcher {
	if srv.sandbox != nil {
		return srv.sandbox
	}
	l := srv.config.Launcher(srv.options.Env)
	srv.sandbox = l
	l.Log = srv.log
	srv.egress = srv.config.UseGateway(l, egress.Options{Events: srv.bus, Record: srv.audit.RecordConnection, Log: srv.log, Secret: srv.secrets.Find})
	l.Refused = func(r profile.Refusal) { srv.bus.Publish(r) }
	return l
}
