package server

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
)

// Upstreams returns the upstreams of the server.
func (srv *Server) Upstreams() *upstreamset.Set { return srv.upstreams }

// CallTool calls a tool of the catalog.
func (srv *Server) CallTool(ctx context.Context, call tool.Call) (tool.Result, error) {
	return srv.catalog.Call(ctx, call)
}

// ReadResource reads one of our own resources.
func (srv *Server) ReadResource(ctx context.Context, uri string) (json.RawMessage, error) {
	return srv.resources().ReadResource(ctx, uri, nil)
}

// AdminHandler serves the admin API and how the server is to callers in this process.
func (srv *Server) AdminHandler() http.Handler {
	return principal.InProcess(append(srv.admin().Routes(), srv.health().Routes()...))
}

// OwnerHandler serves everything to the owner of the server, without authentication.
func (srv *Server) OwnerHandler() http.Handler { return principal.InProcess(srv.routes()) }

// AttachedClient returns the context of an MCP client that attached to this server: of a
// guest, or of an upstream that may use it.
func (srv *Server) AttachedClient(ctx context.Context) (context.Context, error) {
	who, err := srv.localPeers.Identify(ctx)
	who.Keyless = true
	return principal.With(ctx, who), err
}

// MayBeOwner returns why a connection of the owner's socket is not the owner's: it is of a
// program that this server has started.
func (srv *Server) MayBeOwner(ctx context.Context) error { return srv.localPeers.MayBeOwner(ctx) }

// ServePipe serves one more MCP client over a pair of pipes, until it disconnects.
func (srv *Server) ServePipe(ctx context.Context, in io.Reader, out io.Writer) error {
	return srv.hub.ServeStdio(ctx, in, out)
}

// Busy reports whether a client or a dashboard is connected, or a job runs.
func (srv *Server) Busy() bool {
	return srv.hub.Connected() > 0 || srv.dashboard.Readers() > 0 || srv.jobs.Running() > 0
}
