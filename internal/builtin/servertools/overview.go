package servertools

import (
	"context"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/builtin/searchtools"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// Resources makes the resources that list tools and servers.
func Resources(c *catalog.Catalog, u Upstreams, counts Counts) []builtin.Resource {
	o := overview{c, u, counts}
	const mime = "application/json"
	return []builtin.Resource{
		{URI: "lua://tools", Name: "tools", Title: "All tools", MIMEType: mime, Read: o.tools,
			Description: "Every tool of every connected server, with its path in Lua scripts"},
		{URI: "lua://namespaces", Name: "namespaces", Title: "All servers", MIMEType: mime, Read: o.namespaces,
			Description: "Every connected server with its state"},
		{URI: "lua://tools/{namespace}", Name: "namespace-tools", Title: "Tools of a server", MIMEType: mime, Read: o.toolsIn,
			Description: "Complete definitions of one server's tools"},
		{URI: "lua://namespaces/{name}", Name: "namespace", Title: "A server", MIMEType: mime, Read: o.namespace,
			Description: "State of one server and the names of its tools"},
	}
}

type overview struct {
	catalog   *catalog.Catalog
	upstreams Upstreams
	counts    Counts
}

// toolEntry is a tool in the list of all.
type toolEntry struct {
	Name        string `json:"name"`
	Namespace   string `json:"namespace,omitempty"`
	LuaPath     string `json:"lua_path"`
	Description string `json:"description"`

	Flags []string `json:"flags,omitempty"`
}

func (o overview) tools(ctx context.Context, _ string) (string, error) {
	entries := []toolEntry{}
	for _, namespace := range append([]string{""}, o.catalog.Namespaces(ctx)...) {
		tools, _ := o.catalog.In(ctx, namespace)
		for i := range tools {
			entries = append(entries, toolEntry{
				Name: tools[i].Name, Namespace: namespace,
				LuaPath: tools[i].ScriptPath(), Description: builtin.Brief(tools[i].Description, builtin.BriefLength), Flags: tools[i].Flags,
			})
		}
	}
	return builtin.AsJSON(map[string]any{"tools": entries, "total": len(entries)}, nil)
}

func (o overview) toolsIn(ctx context.Context, namespace string) (string, error) {
	tools, ok := o.catalog.In(ctx, namespace)
	if !ok {
		return "", o.unknown(ctx, namespace)
	}
	definitions := make([]searchtools.Definition, len(tools))
	for i := range tools {
		definitions[i] = searchtools.DefinitionOf(&tools[i])
	}
	return builtin.AsJSON(map[string]any{"namespace": namespace, "tools": definitions, "total": len(definitions)}, nil)
}

func (o overview) namespaces(ctx context.Context, _ string) (string, error) {
	views := []UpstreamView{}
	for _, s := range SeenUpstreams(ctx, o.upstreams) {
		views = append(views, View(ctx, s, o.counts))
	}
	return builtin.AsJSON(map[string]any{"namespaces": views, "total": len(views)}, nil)
}

// namespaceView is a server with the names of its tools.
type namespaceView struct {
	UpstreamView
	URL   string   `json:"url,omitempty"`
	Names []string `json:"tools"`
}

func (o overview) namespace(ctx context.Context, name string) (string, error) {
	tools, known := o.catalog.In(ctx, name)
	space := ownUpstream(ctx, o.upstreams, name)
	status, connected := o.upstreams.Status(space)
	if !known && !connected || !principal.Of(ctx).CanSee(space, "") {
		return "", o.unknown(ctx, name)
	}
	v := namespaceView{UpstreamView: UpstreamView{Status: upstreamset.Status{Namespace: name, Tools: len(tools)}}, Names: make([]string, len(tools))}
	if connected {
		v.UpstreamView = View(ctx, status, o.counts)
		v.URL = status.Endpoint
	}
	for i := range tools {
		v.Names[i] = tools[i].Name
	}
	return builtin.AsJSON(v, nil)
}

func (o overview) unknown(ctx context.Context, namespace string) error {
	return fault.New(fault.NotFound, "no namespace %q", namespace).
		WithHint("available: %s", strings.Join(o.catalog.Namespaces(ctx), ", "))
}
