package server

import (
	"cmp"
	"context"
	"time"

	"github.com/luanette/luanette/internal/access/owner"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/observe/telemetry"
	"github.com/luanette/luanette/internal/zmq/hootserver"
	"github.com/luanette/luanette/internal/zmq/zmtp"
)

// backend is a source of tools to be served over ZeroMQ.
type backend struct {
	Name      string // of the service
	Listen    string // such as tcp://127.0.0.1:5580
	Broadcast string // such as tcp://127.0.0.1:5581; empty means the port after Listen's
	Source    tool.Source
	Changed   <-chan struct{} // signals that the list of tools changed; nil: never
}

// openBridge listens for clients of the backend.
func (srv *Server) openBridge(ctx context.Context, what backend) (*hootserver.Server, error) {
	if what.Broadcast == "" {
		what.Broadcast = hootserver.NextEndpoint(what.Listen)
	}
	secret, err := srv.config.BridgeSecret(srv.config.SecretFinder(srv.options.Env))
	curve, invalid := zmtp.ServerCurve(secret, srv.config.Bridge.CurveClients)
	if err := cmp.Or(err, invalid); err != nil {
		return nil, err
	}
	if curve == nil && !hootserver.IsLocal(what.Listen) {
		srv.log.WarnContext(ctx, "other machines can call these tools without authentication", "listen", what.Listen)
	}
	return hootserver.Listen(ctx, hootserver.Options{
		Name: what.Name, Listen: what.Listen, Broadcast: what.Broadcast, Curve: curve, Source: what.Source, ToolsChanged: what.Changed,
		Events: srv.bus, Log: srv.log, Grace: time.Duration(srv.config.Drain),
		Tracer: srv.telemetry.Tracer("bridge"), Propagator: telemetry.Propagator(),
	})
}

// guestSource lists and calls tools for clients over ZeroMQ, which do not show who they are.
type guestSource struct {
	tool.Source
	peers *owner.Peers
}

func (s guestSource) as(ctx context.Context) context.Context {
	who := principal.Guest()
	who.Keyless = true
	if s.peers.Local == owner.AsOwner {
		who = principal.Local()
	}
	return principal.With(ctx, who)
}

// Tools lists the tools.
func (s guestSource) Tools(ctx context.Context) ([]tool.Info, error) {
	return s.Source.Tools(s.as(ctx))
}

// Call calls a tool.
func (s guestSource) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	return s.Source.Call(s.as(ctx), call)
}

// startBridge serves the tools that MCP clients see over ZeroMQ too, if bridge.listen is
// set. The function that it returns ends it after running calls have ended.
func (srv *Server) startBridge(ctx context.Context) (addr string, stop func(), err error) {
	if srv.config.Bridge.Listen == "" {
		return "", func() {}, nil
	}
	exposed := srv.catalog.Exposed()
	changed, unwatch := exposed.Changes()
	b, err := srv.openBridge(ctx, backend{
		Name: "luanette", Listen: srv.config.Bridge.Listen, Broadcast: srv.config.Bridge.Broadcast, Source: guestSource{exposed, srv.localPeers}, Changed: changed,
	})
	if err != nil {
		unwatch()
		return "", nil, fault.Wrap(fault.Config, err, "bridge").WithHint("choose another address with bridge.listen, or none")
	}
	end := b.Start(ctx)
	return b.Addr(), func() { end(); unwatch() }, nil
}
