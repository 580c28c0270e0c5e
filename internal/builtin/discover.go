package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/results"
	"github.com/luanette/luanette/internal/tools/typedecl"
)

// Catalog is the source of all tools.
type Catalog interface {
	Search(ctx context.Context, q catalog.Query) (hits []catalog.Hit, total int)
	// Resolve finds a tool by any form of its name.
	Resolve(ctx context.Context, name string) (tool.Info, error)
	Call(ctx context.Context, call tool.Call) (tool.Result, error)
	Namespaces(ctx context.Context) []string
	In(ctx context.Context, namespace string) (tools []tool.Info, ok bool)
	// Shows reports whether a tool is shown to the caller. Calls of hidden tools are
	// refused with the reason.
	Shows(ctx context.Context, ref tool.Ref) bool
}

// Shapes knows the observed shapes of results whose tools have no output schema.
type Shapes interface {
	Learned(ref tool.Ref) (results.Learned, bool)
}

// Discovery makes the tools that find and call other tools.
func Discovery(c Catalog, s Shapes) []Tool {
	d := discovery{c, s}
	return []Tool{
		Define("search_tools", tool.Hints{ReadOnly: true, ClosedWorld: true}, d.search),
		Define("get_tool_definitions", tool.Hints{ReadOnly: true, ClosedWorld: true}, d.definitions),
		Relay("call_tool", tool.Hints{}, d.call),
	}
}

type discovery struct {
	catalog Catalog
	shapes  Shapes
}

type searchIn struct {
	Query     string `json:"query" jsonschema:"words for what the tool should do; an empty string lists tools" max:"1000"`
	Namespace string `json:"namespace,omitempty" jsonschema:"search only this server's tools"`
	Limit     int    `json:"limit,omitempty" jsonschema:"maximum number (default 10)" min:"1" max:"100"`
}

// Found is the result of search_tools.
type Found struct {
	Tools []FoundTool `json:"tools" jsonschema:"best match first"`
	Total int         `json:"total" jsonschema:"how many tools matched"`
}

// FoundTool is one tool found, in short form.
type FoundTool struct {
	Name        string `json:"name" jsonschema:"for get_tool_definitions and call_tool"`
	Signature   string `json:"signature" jsonschema:"arguments it takes; a question mark marks optional ones"`
	Description string `json:"description" jsonschema:"beginning of the description"`
	ReadOnly    bool   `json:"read_only,omitempty" jsonschema:"it is marked read-only"`
	Stale       bool   `json:"stale,omitempty" jsonschema:"its server is currently disconnected"`
}

// Text lists the tools, one paragraph each.
func (f Found) Text() string {
	if len(f.Tools) == 0 {
		return "No tool matches. Try other words, or mcp_list_upstreams."
	}
	var b strings.Builder
	if f.Total > len(f.Tools) {
		fmt.Fprintf(&b, "%d of %d matching tools:\n", len(f.Tools), f.Total)
	}
	for _, t := range f.Tools {
		fmt.Fprintf(&b, "%s%s\n  %s\n", t.Name, t.Signature, t.Description)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (d discovery) search(ctx context.Context, _ tool.Call, in searchIn) (Found, error) {
	if in.Namespace != "" {
		if _, ok := d.catalog.In(ctx, in.Namespace); !ok {
			return Found{}, d.unknownNamespace(ctx, in.Namespace)
		}
	}
	hits, total := d.catalog.Search(ctx, catalog.Query{Text: in.Query, Namespace: in.Namespace, Limit: in.Limit})
	f := Found{Tools: make([]FoundTool, len(hits)), Total: total}
	for i, h := range hits {
		f.Tools[i] = FoundTool{
			Name: h.Ref.String(), Signature: catalog.Signature(h.Input), Description: brief(h.Description),
			ReadOnly: h.Hints.ReadOnly, Stale: h.Stale,
		}
	}
	return f, nil
}

func (d discovery) unknownNamespace(ctx context.Context, namespace string) error {
	known := d.catalog.Namespaces(ctx)
	err := fault.New(fault.InvalidParams, "no namespace %q", namespace).WithDetails(map[string]any{"available": known})
	if close := suggest.Names(namespace, known, 3); len(close) > 0 {
		return err.WithHint("did you mean %s?", strings.Join(close, " or "))
	}
	return err.WithHint("available: %s", strings.Join(known, ", "))
}

type definitionsIn struct {
	Names  []string `json:"names" jsonschema:"names as search_tools gives them" min:"1" max:"100"`
	Format string   `json:"format,omitempty" jsonschema:"json schemas (default), or declarations for code" enum:"json,typescript,lua"`
}

// Definitions is the result of get_tool_definitions. Every requested name is in one of the two lists.
type Definitions struct {
	Tools        []Definition `json:"tools" jsonschema:"empty when declarations were asked for"`
	Declarations string       `json:"declarations,omitempty" jsonschema:"the tools in TypeScript or Lua"`
	Unknown      []Unknown    `json:"unknown" jsonschema:"names without a tool"`
}

// Definition is the complete definition of a tool.
type Definition struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description"`
	LuaPath     string `json:"lua_path" jsonschema:"the function in Lua scripts"`
	Input       Object `json:"input_schema"`
	Output      Object `json:"output_schema,omitempty"`
	Learned     Object `json:"learned_output_schema,omitempty" jsonschema:"type of its results so far; it has no output schema"`
	LearnedFrom int    `json:"learned_from,omitempty" jsonschema:"number of those results"`
	Annotations Object `json:"annotations,omitempty"`
	Stale       bool   `json:"stale,omitempty" jsonschema:"its server is currently disconnected"`
}

// Unknown is a name without a tool.
type Unknown struct {
	Name       string   `json:"name"`
	DidYouMean []string `json:"did_you_mean"`
}

// Text returns the definitions in full.
func (d Definitions) Text() string {
	var b strings.Builder
	b.WriteString(d.Declarations)
	for _, t := range d.Tools {
		fmt.Fprintf(&b, "%s\n%s\ninput: %s\n", t.Name, t.Description, t.Input)
		if len(t.Output) > 0 {
			fmt.Fprintf(&b, "output: %s\n", t.Output)
		}
		if t.LearnedFrom > 0 {
			fmt.Fprintf(&b, "output, learned from %s: %s\n", count(t.LearnedFrom, "result"), t.Learned)
		}
		b.WriteByte('\n')
	}
	for _, u := range d.Unknown {
		fmt.Fprintf(&b, "no tool %q", u.Name)
		if len(u.DidYouMean) > 0 {
			fmt.Fprintf(&b, "; did you mean %s?", strings.Join(u.DidYouMean, " or "))
		}
		b.WriteByte('\n')
	}
	return strings.TrimSpace(b.String())
}

func (d discovery) definitions(ctx context.Context, _ tool.Call, in definitionsIn) (Definitions, error) {
	all := Definitions{Tools: []Definition{}, Unknown: []Unknown{}}
	var declared []typedecl.Tool
	seen := map[string]bool{}
	for _, name := range in.Names {
		if seen[name] {
			continue
		}
		seen[name] = true
		info, err := d.catalog.Resolve(ctx, name)
		if err != nil {
			all.Unknown = append(all.Unknown, Unknown{name, suggestions(err)})
			continue
		}
		if !d.catalog.Shows(ctx, info.Ref) {
			all.Unknown = append(all.Unknown, Unknown{name, []string{}})
			continue
		}
		if in.Format == "" || in.Format == "json" {
			all.Tools = append(all.Tools, d.definitionOf(&info))
		} else {
			declared = append(declared, d.declared(&info))
		}
	}
	if len(declared) > 0 {
		all.Declarations = declarations[in.Format](declared)
	}
	return all, nil
}

// declarations are the languages in which tools can be declared.
var declarations = map[string]func([]typedecl.Tool) string{"typescript": typedecl.TypeScript, "lua": typedecl.Lua}

// declared returns a tool to declare, with the learned type of its results if it has
// no output schema.
func (d discovery) declared(info *tool.Info) typedecl.Tool {
	t := typedecl.Of(info)
	if learned, ok := d.learned(info); ok {
		t.Output, t.Learned = learned.Schema, learned.Results
	}
	return t
}

func (d discovery) learned(info *tool.Info) (results.Learned, bool) {
	if d.shapes == nil || info.Output != nil {
		return results.Learned{}, false
	}
	return d.shapes.Learned(info.Ref)
}

// suggestions returns the names that a tool_not_found error suggests.
func suggestions(err error) []string {
	var details struct {
		DidYouMean []string `json:"did_you_mean"`
	}
	if json.Unmarshal(fault.From(err).Details, &details) != nil || details.DidYouMean == nil {
		return []string{}
	}
	return details.DidYouMean
}

func (d discovery) definitionOf(info *tool.Info) Definition {
	def := Definition{
		Name: info.Ref.String(), Title: info.Title, Description: info.Description, LuaPath: luaPath(info.Ref),
		Input: Object(info.Input), Output: Object(info.Output), Stale: info.Stale,
	}
	if raw, ok := rawjson.Get(info.Raw, "annotations"); ok && rawjson.IsObject(raw) {
		def.Annotations = Object(raw)
	}
	if learned, ok := d.learned(info); ok {
		def.Learned, def.LearnedFrom = Object(learned.Schema), learned.Results
	}
	return def
}

// luaPath returns the expression for a tool in Lua: mcp.fs.read, mcp.fs["read-file"].
func luaPath(ref tool.Ref) string {
	path := "mcp"
	for _, part := range []string{ref.Space, ref.Name} {
		switch {
		case part == "":
		case isLuaName(part):
			path += "." + part
		default:
			path += fmt.Sprintf("[%q]", part)
		}
	}
	return path
}

func isLuaName(name string) bool {
	for i, c := range name {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return !luaWords[name]
}

var luaWords = map[string]bool{
	"and": true, "break": true, "do": true, "else": true, "elseif": true, "end": true, "false": true, "for": true,
	"function": true, "goto": true, "if": true, "in": true, "local": true, "nil": true, "not": true, "or": true,
	"repeat": true, "return": true, "then": true, "true": true, "until": true, "while": true,
}

type callIn struct {
	Name      string `json:"name" jsonschema:"tool to call, as search_tools gives it: namespace.tool" min:"1"`
	Arguments Object `json:"arguments,omitempty" jsonschema:"arguments as the tool's input schema asks for"`
}

func (d discovery) call(ctx context.Context, call tool.Call, in callIn) (tool.Result, error) {
	info, err := d.catalog.Resolve(ctx, in.Name)
	ref := info.Ref
	if err != nil {
		// The tools of the namespace may not be listed yet; and a call of a tool that the
		// caller may not use is refused with the reason.
		space, name, found := strings.Cut(strings.TrimPrefix(in.Name, "mcp."), ".")
		if !found {
			return tool.Result{}, err
		}
		ref = tool.Ref{Space: space, Name: name}
	}
	if host.ParentOf(ctx) != nil && ref.String() != strings.TrimPrefix(in.Name, "mcp.") {
		// The effect was approved for the name as given, not for one we guessed.
		return tool.Result{}, fault.New(fault.InvalidParams, "call_tool: scripts must use the exact name of a tool, not %q", in.Name).
			WithHint("call mcp.%s { … }", ref)
	}
	meta := call.Meta
	if rawjson.IsObject(meta) { // our own keys are not passed on
		meta = rawjson.Delete(meta, FullKey)
	}
	return d.catalog.Call(ctx, tool.Call{
		Ref: ref, Args: json.RawMessage(in.Arguments), Meta: meta, Caller: call.Caller,
	})
}

// brief returns the first paragraph of a description, at most 240 bytes.
func brief(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n\n")
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= 240 {
		return text
	}
	end := 240
	for !utf8.RuneStart(text[end]) {
		end--
	}
	if space := strings.LastIndexByte(text[:end], ' '); space > 120 {
		end = space
	}
	return text[:end] + " …"
}
