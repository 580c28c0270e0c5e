package server

import (
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/sandbox/egress"
	"github.com/luanette/luanette/internal/sandbox/launch"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// launcher starts sandboxed programs. What they are refused is an event.
func (srv *Server) launcher() *launch.Launcher {
	l := srv.config.Launcher(srv.options.Env)
	l.Log = srv.log
	config.UseGateway(l, egress.New(egress.Options{Events: srv.bus, Log: srv.log, Secret: srv.secrets.Find}))
	l.Refused = func(r profile.Refusal) { srv.bus.Publish(r) }
	return l
}
