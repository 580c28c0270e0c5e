package client

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

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
var namespaceInCode = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bmcp(?:\.call\s*\(\s*["']|\s*\[\s*["']|\s*\.\s*)([A-Za-z][A-Za-z0-9_-]*)`)
})

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
	case "lua://tools", "lua://tokens":
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
