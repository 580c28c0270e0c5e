package client

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/serverapi"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
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
	request, err := serverapi.NewRequest(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	c.startForPath(ctx, path)
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	c.server.AdminHandler().ServeHTTP(w, request)
	if w.status >= http.StatusBadRequest {
		return nil, serverapi.ErrorOf(w.status, w.body.Bytes())
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

// startForTool starts the upstreams that one of our tools tells about. All other tools
// start what they use: a call starts its upstream, a script those that it names.
func (c *local) startForTool(ctx context.Context, name string, args json.RawMessage) {
	if name == "call_tool" {
		name, _ = rawjson.GetText(args, "name")
		args, _ = rawjson.Get(args, "arguments")
	}
	switch name {
	case "mcp_list_upstreams":
		c.start(ctx, c.server.Upstreams().Namespaces())
	case "mcp_status":
		if namespace, ok := rawjson.GetText(args, "namespace"); ok {
			c.start(ctx, []string{namespace})
			return
		}
		c.start(ctx, c.server.Upstreams().Namespaces())
	case "search_tools":
		if namespace, _ := rawjson.GetText(args, "namespace"); namespace == "" {
			c.start(ctx, c.server.Upstreams().Unlisted())
		}
	case "lua_eval", "lua_preview", "execute_code":
		code, _ := rawjson.GetText(args, "code")
		c.start(ctx, c.namedIn(code))
	}
}

// namespaceInCode matches mcp.name, mcp["name"] and mcp.call("name".
var namespaceInCode = lazyregexp.New(`\bmcp(?:\.call\s*\(\s*["']|\s*\[\s*["']|\s*\.\s*)([A-Za-z][A-Za-z0-9_-]*)`)

// namedIn returns the upstreams that a script names. They are started before it runs, so
// that their start does not take from its time; others start when the script uses them.
func (c *local) namedIn(code string) (names []string) {
	if !strings.Contains(code, "mcp") {
		return nil
	}
	for _, match := range namespaceInCode().FindAllStringSubmatch(code, -1) {
		if name := match[1]; c.server.Upstreams().Has(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// startForResource starts the upstreams whose tools a resource lists, if they are not
// known from an earlier connection.
func (c *local) startForResource(ctx context.Context, uri string) {
	switch uri {
	case "lua://tools", "lua://tokens", "lua://sets":
		c.start(ctx, c.server.Upstreams().Unlisted())
	case "lua://namespaces":
		c.start(ctx, c.server.Upstreams().Namespaces())
	}
}

// startForPath starts the upstreams that a request to the admin API is about.
func (c *local) startForPath(ctx context.Context, path string) {
	switch path, _, _ := strings.Cut(path, "?"); {
	case path == "/api/v1/upstreams":
		c.start(ctx, c.server.Upstreams().Namespaces())
	case path == "/api/v1/pins", strings.HasPrefix(path, "/api/v1/pins/"):
		c.start(ctx, c.server.Upstreams().Unlisted()) // their definitions await review
	}
}

func (c *local) start(ctx context.Context, names []string) {
	if len(names) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.wait)
	defer cancel()
	c.server.Upstreams().Start(ctx, names...)
}

// Waiting is something that a command waits for.
type Waiting struct {
	Name  string
	State string
	Since time.Time
}

func (c *local) Waiting() []Waiting {
	var list []Waiting
	for _, s := range c.server.Upstreams().Manager.List() {
		switch s.State {
		case upstream.StateConnected, upstream.StateAsleep, upstream.StateNeedsAuth, upstream.StateFailed:
		default: // it was started because something needs it
			list = append(list, Waiting{s.Name, string(s.State), s.Since})
		}
	}
	return list
}
