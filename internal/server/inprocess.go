package server

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/core/tool"
)

// AwaitUpstreams waits until every upstream is connected or has failed, at most for
// timeout.
func (srv *Server) AwaitUpstreams(ctx context.Context, timeout time.Duration) {
	srv.upstreams.AwaitAttempts(ctx, timeout)
	srv.catalog.Refresh(ctx)
}

// CallTool calls a tool of the catalog.
func (srv *Server) CallTool(ctx context.Context, call tool.Call) (tool.Result, error) {
	return srv.catalog.Call(ctx, call)
}

// ReadResource reads one of our own resources.
func (srv *Server) ReadResource(ctx context.Context, uri string) (json.RawMessage, error) {
	return srv.resources().ReadResource(ctx, uri, nil)
}

// AdminHandler serves the admin API to callers in this process.
func (srv *Server) AdminHandler() http.Handler { return srv.admin() }
