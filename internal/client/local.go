package client

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/server"
)

// Local returns a client of a server in this process, which was built with OnDemand.
// Requests that need the upstreams start them, and wait for each at most that long.
func Local(srv *server.Server, wait time.Duration) Client {
	return &local{srv, wait, fullResults}
}

type local struct {
	server *server.Server
	wait   time.Duration
	meta   json.RawMessage
}

func (c *local) With(notes map[string]any) Client {
	return &local{c.server, c.wait, withNotes(c.meta, notes)}
}

func (c *local) Call(ctx context.Context, name string, args any, caller *tool.Caller) (tool.View, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return tool.View{}, fault.Wrap(fault.InvalidParams, err, "encode arguments of %s", name)
	}
	c.startForTool(ctx, name, raw)
	result, err := c.server.CallTool(ctx, tool.Call{Ref: tool.Ref{Name: name}, Args: raw, Meta: c.meta, Caller: caller})
	if err != nil {
		return tool.View{}, err
	}
	return result.View()
}

func (c *local) Read(ctx context.Context, uri string) (string, error) {
	c.startForResource(ctx, uri)
	raw, err := c.server.ReadResource(ctx, uri)
	if err != nil {
		return "", err
	}
	return resourceText(raw)
}

func (c *local) Admin(ctx context.Context, method, path string, body any) (json.RawMessage, error) {
	request, err := newRequest(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	c.startForPath(ctx, path)
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	c.server.AdminHandler().ServeHTTP(w, request)
	if w.status >= http.StatusBadRequest {
		return nil, responseError(w.status, w.body.Bytes())
	}
	return w.body.Bytes(), nil
}

func (c *local) Close(ctx context.Context) error { return c.server.Close(ctx) }

// recorder is an http.ResponseWriter that stores the response.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header                { return r.header }
func (r *recorder) WriteHeader(status int)             { r.status = status }
func (r *recorder) Write(data []byte) (n int, _ error) { return r.body.Write(data) }
