package adminapi

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
)

// Tools lists the tools of every server, and changes which of them exist, what they are
// called and which of them clients see.
type Tools struct {
	Catalog interface {
		Namespaces(ctx context.Context) []string
		In(ctx context.Context, namespace string) (tools []tool.Info, ok bool)
	}
	Set *upstreamset.Set
	// Configure changes the settings of the tools of a server of the configuration.
	Configure func(ctx context.Context, server string, s upstreamset.ToolSettings) error
}

// OwnServer stands for the server of our own tools and of published scripts.
const OwnServer = "luanette"

// ToolGroup is the tools of one server.
type ToolGroup struct {
	Server   string   `json:"server"`
	Tools    int      `json:"tools"`
	Tokens   int      `json:"tokens"` // about how many the definitions take in a model's context
	Stale    bool     `json:"stale,omitempty"`
	Disabled []string `json:"disabled,omitempty"` // tools that do not exist, by the server's names
}

// ListedTool is a tool in the list of one server.
type ListedTool struct {
	Name        string `json:"name"` // with the server
	Title       string `json:"title,omitempty"`
	Description string `json:"description"` // its beginning
	Tokens      int    `json:"tokens"`
	ReadOnly    bool   `json:"read_only,omitempty"`
	Destructive bool   `json:"destructive,omitempty"` // its server says that it may overwrite or delete
	Unmarked    bool   `json:"unmarked,omitempty"`    // its server does not say whether it reads, writes or deletes
	Original    string `json:"original,omitempty"`    // the server's name of a tool that was renamed
	Exposed     bool   `json:"exposed,omitempty"`     // clients see it directly
}

// ToolList is the servers, and the tools of the one that was asked for.
type ToolList struct {
	Servers []ToolGroup  `json:"servers"`
	Total   int          `json:"total"`
	Tokens  int          `json:"tokens"`
	Tools   []ListedTool `json:"tools,omitempty"`
}

func (s *Server) listTools(r *http.Request) (any, error) {
	if name := r.URL.Query().Get("name"); name != "" {
		return s.options.Tools.named(r.Context(), name)
	}
	if server := r.URL.Query().Get("server"); server != "" {
		return s.options.Tools.one(r.Context(), server)
	}
	return s.options.Tools.all(r.Context()), nil
}

// all returns the servers with the numbers of their tools.
func (t Tools) all(ctx context.Context) ToolList {
	list := ToolList{Servers: []ToolGroup{}}
	for _, name := range append(t.Catalog.Namespaces(ctx), "") {
		tools, _ := t.Catalog.In(ctx, name)
		group := t.group(name, tools)
		list.Servers = append(list.Servers, group)
		list.Total += group.Tools
		list.Tokens += group.Tokens
	}
	return list
}

func (t Tools) group(name string, tools []tool.Info) ToolGroup {
	g := ToolGroup{Server: name, Tools: len(tools), Tokens: builtin.ListedTokens(tools), Stale: len(tools) > 0 && tools[0].Stale}
	if name == "" {
		g.Server = OwnServer
	} else if settings, _, err := t.Set.ToolSettings(name); err == nil {
		g.Disabled = settings.Disabled
	}
	return g
}

// one returns the tools of one server.
func (t Tools) one(ctx context.Context, server string) (ToolList, error) {
	name := server
	if server == OwnServer {
		name = ""
	}
	tools, ok := t.Catalog.In(ctx, name)
	if !ok {
		return ToolList{}, fault.New(fault.NotFound, "no server %q", server).WithHint("`luanette upstream list` lists them")
	}
	group := t.group(name, tools)
	list := ToolList{Servers: []ToolGroup{group}, Total: group.Tools, Tokens: group.Tokens, Tools: make([]ListedTool, len(tools))}
	settings, _, _ := t.Set.ToolSettings(name) // none: nothing is exposed
	for i := range tools {
		list.Tools[i] = listed(&tools[i], settings)
	}
	return list, nil
}

// named returns one tool.
func (t Tools) named(ctx context.Context, name string) (ListedTool, error) {
	space, _, qualified := strings.Cut(name, ".")
	if !qualified {
		space = ""
	}
	tools, _ := t.Catalog.In(ctx, space)
	at := slices.IndexFunc(tools, func(info tool.Info) bool { return info.Ref.String() == name })
	if at < 0 {
		return ListedTool{}, fault.New(fault.NotFound, "no tool %s", name).WithHint("`luanette tools` lists them")
	}
	settings, _, _ := t.Set.ToolSettings(space) // none: nothing is exposed
	return listed(&tools[at], settings), nil
}

// maxBrief is how much of a description lists have, in bytes.
const maxBrief = 200

func listed(info *tool.Info, s upstreamset.ToolSettings) ListedTool {
	notes, _ := rawjson.Get(info.Raw, "annotations")
	_, saysReads := rawjson.Get(notes, "readOnlyHint")
	_, saysDeletes := rawjson.Get(notes, "destructiveHint")
	return ListedTool{
		Name: info.Ref.String(), Title: info.Title, Description: builtin.Brief(info.Description, maxBrief), Tokens: builtin.ListedTokens([]tool.Info{*info}),
		ReadOnly: info.Hints.ReadOnly, Destructive: saysDeletes && !info.Hints.ReadOnly && !info.Hints.NonDestructive, Unmarked: !info.Hints.ReadOnly && !saysReads && !saysDeletes,
		Original: info.Original, Exposed: exposes(s, info),
	}
}

func exposes(s upstreamset.ToolSettings, info *tool.Info) bool {
	return slices.ContainsFunc(s.Expose, func(name string) bool {
		return name == upstream.ExposeAll || name == info.Name || info.Original != "" && name == info.Original
	})
}

// ToolChange changes the settings of one tool. Fields that are nil stay as they are.
type ToolChange struct {
	Disabled *bool   `json:"disabled,omitempty"`
	Alias    *string `json:"alias,omitempty"` // its new name; "" is the server's own
	Exposed  *bool   `json:"exposed,omitempty"`
}

// ToolState is what a change made of a tool.
type ToolState struct {
	Name     string `json:"name"`
	Disabled bool   `json:"disabled"`
	Alias    string `json:"alias"`
	Exposed  bool   `json:"exposed"`
}

func (s *Server) changeTool(r *http.Request) (any, error) {
	var want ToolChange
	if err := httpjson.Read(r, &want); err != nil {
		return nil, err
	}
	space, name, found := strings.Cut(r.PathValue("name"), ".")
	if !found {
		return nil, fault.New(fault.Conflict, "%s is a tool of our own", space).
			WithHint("rules of the policy hide tools (docs/policy.md); mcp.pinned in luanette.toml lists them; a published script is changed on its page")
	}
	return s.options.Tools.change(r.Context(), tool.Ref{Space: space, Name: name}, want)
}

// change applies a change where the settings of the server are stored.
func (t Tools) change(ctx context.Context, ref tool.Ref, want ToolChange) (ToolState, error) {
	settings, configured, err := t.Set.ToolSettings(ref.Space)
	if err != nil {
		return ToolState{}, err
	}
	tools, _ := t.Catalog.In(ctx, ref.Space)
	c := changer{ToolSettings: settings, tools: tools, original: originalName(tools, settings, ref.Name)}
	if c.original == "" {
		return ToolState{}, fault.New(fault.NotFound, "no tool %s", ref).WithHint("`luanette tools %s` lists those of the server", ref.Space)
	}
	c.apply(want)
	store := t.Set.SetTools
	if configured {
		store = t.Configure
	}
	if err := store(ctx, ref.Space, c.ToolSettings); err != nil {
		return ToolState{}, err
	}
	return c.state(ref.Space), nil
}

// originalName is the server's name of a tool, given any of its names; "" if there is no
// such tool.
func originalName(tools []tool.Info, s upstreamset.ToolSettings, name string) string {
	for i := range tools {
		if info := &tools[i]; info.Name == name || info.Original == name {
			if info.Original != "" {
				return info.Original
			}
			return info.Name
		}
	}
	if slices.Contains(s.Disabled, name) {
		return name
	}
	return s.Aliases[name]
}

// changer changes the settings of one tool among those of its server.
type changer struct {
	upstreamset.ToolSettings
	tools    []tool.Info
	original string
}

func (c *changer) apply(want ToolChange) {
	if want.Disabled != nil {
		c.Disabled = with(c.Disabled, c.original, *want.Disabled)
	}
	if want.Alias != nil {
		c.rename(*want.Alias)
	}
	if want.Exposed == nil {
		return
	}
	if slices.Contains(c.Expose, upstream.ExposeAll) && !*want.Exposed { // all but this one
		c.Expose = nil
		for i := range c.tools {
			c.Expose = append(c.Expose, originalName(c.tools, c.ToolSettings, c.tools[i].Name))
		}
	}
	if !slices.Contains(c.Expose, upstream.ExposeAll) {
		c.Expose = with(with(c.Expose, c.alias(), false), c.original, *want.Exposed)
	}
}

// rename gives the tool a name; its own removes the alias.
func (c *changer) rename(alias string) {
	if old := c.alias(); old != "" {
		delete(c.Aliases, old)
		c.Expose = replaced(c.Expose, old, c.original)
	}
	if alias == "" || alias == c.original {
		return
	}
	if c.Aliases == nil {
		c.Aliases = map[string]string{}
	}
	c.Aliases[alias] = c.original
}

func (c *changer) alias() string {
	for alias, original := range c.Aliases {
		if original == c.original {
			return alias
		}
	}
	return ""
}

func (c *changer) state(space string) ToolState {
	name := c.original
	if alias := c.alias(); alias != "" {
		name = alias
	}
	return ToolState{
		Name: tool.Ref{Space: space, Name: name}.String(), Disabled: slices.Contains(c.Disabled, c.original), Alias: c.alias(),
		Exposed: slices.Contains(c.Expose, upstream.ExposeAll) || slices.Contains(c.Expose, c.original),
	}
}

// with returns a list with or without a name.
func with(list []string, name string, in bool) []string {
	list = slices.DeleteFunc(slices.Clone(list), func(other string) bool { return other == name })
	if in {
		list = append(list, name)
	}
	return list
}

// replaced returns a list in which a name is another.
func replaced(list []string, old, name string) []string {
	list = slices.Clone(list)
	for i := range list {
		if list[i] == old {
			list[i] = name
		}
	}
	return list
}
