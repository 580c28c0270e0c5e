package builtin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/luanette/luanette/examples/scripts"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// Resource is an MCP resource, or a resource template whose URI ends in one
// {variable}.
type Resource struct {
	URI         string
	Name        string
	Title       string
	Description string
	MIMEType    string // "" if it depends on the variable
	// TypeOf returns the MIME type if it depends on the variable; otherwise nil.
	TypeOf func(ctx context.Context, variable string) string
	// Read returns the text; variable is the decoded value of a template's variable.
	// It returns fault.NotFound if there is no such resource.
	Read func(ctx context.Context, variable string) (text string, err error)
}

// template returns a template's URI up to its variable.
func (r Resource) template() (prefix string, ok bool) {
	prefix, _, ok = strings.Cut(r.URI, "{")
	return prefix, ok
}

// Resources serves resources to the MCP server, in MCP's format.
type Resources struct{ all []Resource }

// NewResources joins the resources of several families.
func NewResources(families ...[]Resource) *Resources {
	r := &Resources{}
	for _, f := range families {
		r.all = append(r.all, f...)
	}
	return r
}

// listing is a resource or a template in MCP's format.
type listing struct {
	URI         string `json:"uri,omitempty"`
	Template    string `json:"uriTemplate,omitempty"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
}

// ListResources lists the resources.
func (r *Resources) ListResources(context.Context) ([]json.RawMessage, error) { return r.list(false) }

// ListTemplates lists the templates.
func (r *Resources) ListTemplates(context.Context) ([]json.RawMessage, error) { return r.list(true) }

func (r *Resources) list(templates bool) ([]json.RawMessage, error) {
	found := []json.RawMessage{}
	for _, one := range r.all {
		l := listing{Name: one.Name, Title: one.Title, Description: one.Description, MIMEType: one.MIMEType}
		if _, isTemplate := one.template(); isTemplate != templates {
			continue
		} else if isTemplate {
			l.Template = one.URI
		} else {
			l.URI = one.URI
		}
		raw, err := json.Marshal(l)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, err, "list resources")
		}
		found = append(found, raw)
	}
	return found, nil
}

// ReadResource returns MCP's ReadResourceResult.
func (r *Resources) ReadResource(ctx context.Context, uri string, _ *tool.Caller) (json.RawMessage, error) {
	one, variable, err := r.find(uri)
	if err != nil {
		return nil, err
	}
	text, err := one.Read(ctx, variable)
	if err != nil {
		return nil, err
	}
	mime := one.MIMEType
	if one.TypeOf != nil {
		mime = one.TypeOf(ctx, variable)
	}
	return json.Marshal(map[string]any{
		"contents": []map[string]string{{"uri": uri, "mimeType": mime, "text": text}},
	})
}

func (r *Resources) find(uri string) (Resource, string, error) {
	for _, one := range r.all {
		if one.URI == uri {
			return one, "", nil
		}
	}
	for _, one := range r.all {
		prefix, ok := one.template()
		if !ok {
			continue
		}
		if rest, ok := strings.CutPrefix(uri, prefix); ok && rest != "" && !strings.Contains(rest, "/") {
			if variable, err := url.PathUnescape(rest); err == nil {
				return one, variable, nil
			}
		}
	}
	known := make([]string, len(r.all))
	for i, one := range r.all {
		known[i] = one.URI
	}
	return Resource{}, "", fault.New(fault.NotFound, "no resource %q", uri).
		WithHint("available: %s", strings.Join(known, ", "))
}

// OverviewResources makes the resources that list tools and servers.
func OverviewResources(c *catalog.Catalog, u Upstreams, counts Counts) []Resource {
	o := overview{c, u, counts}
	const mime = "application/json"
	return []Resource{
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
				LuaPath: tools[i].ScriptPath(), Description: brief(tools[i].Description), Flags: tools[i].Flags,
			})
		}
	}
	return asJSON(map[string]any{"tools": entries, "total": len(entries)}, nil)
}

func (o overview) toolsIn(ctx context.Context, namespace string) (string, error) {
	tools, ok := o.catalog.In(ctx, namespace)
	if !ok {
		return "", o.unknown(ctx, namespace)
	}
	definitions := make([]Definition, len(tools))
	for i := range tools {
		definitions[i] = discovery{catalog: o.catalog}.definitionOf(&tools[i])
	}
	return asJSON(map[string]any{"namespace": namespace, "tools": definitions, "total": len(definitions)}, nil)
}

func (o overview) namespaces(ctx context.Context, _ string) (string, error) {
	views := []UpstreamView{}
	for _, s := range SeenUpstreams(ctx, o.upstreams) {
		views = append(views, viewOf(ctx, s, o.counts))
	}
	return asJSON(map[string]any{"namespaces": views, "total": len(views)}, nil)
}

// namespaceView is a server with the names of its tools.
type namespaceView struct {
	UpstreamView
	URL   string   `json:"url,omitempty"`
	Tools []string `json:"tools"`
}

func (o overview) namespace(ctx context.Context, name string) (string, error) {
	tools, known := o.catalog.In(ctx, name)
	space := ownUpstream(ctx, o.upstreams, name)
	status, connected := o.upstreams.Status(space)
	if !known && !connected || !principal.Of(ctx).CanSee(space, "") {
		return "", o.unknown(ctx, name)
	}
	v := namespaceView{UpstreamView: UpstreamView{Namespace: name, ToolCount: len(tools)}, Tools: make([]string, len(tools))}
	if connected {
		v.UpstreamView = viewOf(ctx, status, o.counts)
		v.URL = status.Endpoint
	}
	for i := range tools {
		v.Tools[i] = tools[i].Name
	}
	return asJSON(v, nil)
}

func (o overview) unknown(ctx context.Context, namespace string) error {
	return fault.New(fault.NotFound, "no namespace %q", namespace).
		WithHint("available: %s", strings.Join(o.catalog.Namespaces(ctx), ", "))
}

// asJSON is the text of a resource that shows v, if err is nil.
func asJSON(v any, err error) (string, error) {
	if err != nil {
		return "", err
	}
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encode resource: %w", err)
	}
	return string(raw), nil
}

// Music is the readable part of the music backend.
type Music interface {
	Artifact(ctx context.Context, id string) (hootenanny.ArtifactView, error)
	Artifacts(ctx context.Context, q hootenanny.Search) (hootenanny.ArtifactList, error)
	Garden(ctx context.Context, project string) (hootenanny.GardenView, error)
}

// MusicResources makes the resources for artifacts and the transport.
func MusicResources(m Music) []Resource {
	const mime = "application/json"
	list := func(q hootenanny.Search) func(context.Context, string) (string, error) {
		return func(ctx context.Context, _ string) (string, error) {
			return asJSON(m.Artifacts(ctx, q))
		}
	}
	timeline := func(ctx context.Context, project string) (string, error) {
		return asJSON(m.Garden(ctx, project))
	}
	return []Resource{
		{URI: "hoot://artifacts/recent", Name: "recent-artifacts", Title: "Recent artifacts", MIMEType: mime,
			Description: "The newest 50 artifacts with their tags and where their contents are", Read: list(hootenanny.Search{Limit: 50})},
		{URI: "hoot://soundfonts", Name: "soundfonts", Title: "SoundFonts", MIMEType: mime,
			Description: "The artifacts that are SoundFonts", Read: list(hootenanny.Search{Tags: []string{"type:soundfont"}, Limit: 200})},
		{URI: "hoot://garden", Name: "garden", Title: "The garden", MIMEType: mime, Description: "The transport and the timeline", Read: timeline},
		{URI: "hoot://garden/{project}", Name: "garden-project", Title: "A project", MIMEType: mime, Description: "The transport and the timeline of one project", Read: timeline},
		{URI: "hoot://artifact/{id}", Name: "artifact", Title: "An artifact", MIMEType: mime, Description: "All metadata of one artifact",
			Read: func(ctx context.Context, id string) (string, error) {
				return asJSON(m.Artifact(ctx, id))
			}},
	}
}

// exampleTemplate is the URI template of the examples.
const exampleTemplate = "lua://examples/{name}"

// ScriptResources makes the resources for stored scripts and examples. Each example
// also has its own URI, so that clients list it.
func ScriptResources(s *artifact.Store) []Resource {
	all := []Resource{
		{URI: "lua://scripts/{hash}", Name: "script", Title: "A stored script",
			Description: "Source of a stored script, by its hash or at least its first 12 digits",
			TypeOf:      func(ctx context.Context, hash string) string { return storedMIME(ctx, s, hash) },
			Read: func(ctx context.Context, hash string) (string, error) {
				_, source, err := loadScript(ctx, s, hash)
				return source, err
			}},
		{URI: exampleTemplate, Name: "example", Title: "An example script",
			Description: "Source of an example: " + strings.Join(exampleNames(), ", "),
			TypeOf:      func(_ context.Context, name string) string { return exampleMIME(name) },
			Read:        func(_ context.Context, name string) (string, error) { return example(name) }},
	}
	for _, name := range exampleNames() {
		all = append(all, Resource{
			URI: "lua://examples/" + name, Name: "example-" + name, Title: "Example: " + name, MIMEType: exampleMIME(name), Description: exampleTitle(name),
			Read: func(context.Context, string) (string, error) { return example(name) },
		})
	}
	return all
}

// storedMIME returns the MIME type of a stored script; Lua if there is none.
func storedMIME(ctx context.Context, s *artifact.Store, hash string) string {
	ref, err := s.Resolve(ctx, strings.TrimSpace(hash))
	if err != nil {
		return scriptMIME[script.Lua]
	}
	a, err := s.Get(ctx, ref)
	if err != nil {
		return scriptMIME[script.Lua]
	}
	return a.MIME
}

// exampleNames lists the examples, sorted; those in Lua without their extension.
func exampleNames() []string {
	entries, _ := scripts.Files.ReadDir(".") // embedded, cannot fail
	var names []string
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), ".lua"))
	}
	return names
}

func example(name string) (string, error) {
	name = path.Base(name)
	if path.Ext(name) == "" {
		name += ".lua"
	}
	raw, err := scripts.Files.ReadFile(name)
	if err != nil {
		return "", fault.New(fault.NotFound, "no example %q", name).WithHint("available: %s", strings.Join(exampleNames(), ", "))
	}
	return string(raw), nil
}

func exampleMIME(name string) string { return scriptMIME[cmp.Or(storeLanguage(name), script.Lua)] }

// exampleTitle returns the example's first comment line.
func exampleTitle(name string) string {
	source, _ := example(name)
	line, _, _ := strings.Cut(source, "\n")
	return strings.TrimSpace(strings.TrimLeft(line, "-/"))
}
