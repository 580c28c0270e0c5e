package builtin

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/results"
)

// Catalog is the source of all tools.
type Catalog interface {
	Search(ctx context.Context, q catalog.Query) (hits []catalog.Hit, total int)
	SearchAll(ctx context.Context, q catalog.Query) catalog.Found
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
	Query     string   `json:"query,omitempty" jsonschema:"what it should do; empty lists all"`
	Queries   []string `json:"queries,omitempty" jsonschema:"wordings: goal, verb, likely nouns" max:"5"`
	Namespace string   `json:"namespace,omitempty" jsonschema:"server"`
	Limit     int      `json:"limit,omitempty" jsonschema:"default 8"`
}

// How many tools search_tools returns if the caller does not say, and at most.
const (
	defaultFound = 8
	mostFound    = 100
)

// limit is how many tools to return; checked here, because bounds in the schema cost
// tokens in every client's list.
func (in *searchIn) limit() int {
	if in.Limit <= 0 {
		return defaultFound
	}
	return min(in.Limit, mostFound)
}

// texts are the wordings of the search; the first is never missing.
func (in *searchIn) texts() []string {
	var all []string
	for _, text := range append([]string{in.Query}, in.Queries...) {
		if strings.TrimSpace(text) != "" {
			all = append(all, text)
		}
	}
	if len(all) == 0 {
		return []string{""}
	}
	return all
}

func (d discovery) search(ctx context.Context, _ tool.Call, in searchIn) (Found, error) {
	q, family, err := d.query(ctx, in)
	if err != nil {
		return Found{}, err
	}
	result := d.catalog.SearchAll(ctx, q)
	hits, total := result.Hits, result.Total
	if family != "" {
		hits, total = ofFamily(hits, family, in.limit())
	}
	f := Found{Tools: make([]FoundTool, len(hits)), Total: total, Servers: servers(result.Spaces), Steps: stepsOf(result)}
	used := map[string]bool{}
	for i, h := range hits {
		f.Tools[i] = FoundTool{
			Name: h.Ref.String(), Script: inScripts(h.Ref), Signature: catalog.Signature(h.Input), Description: opening(h.Description, foundLength),
			Distinct: strings.Join(h.Distinct, " "), ReadOnly: h.Hints.ReadOnly, Stale: h.Stale,
		}
		if h.Space == "" {
			f.Tools[i].Family = familyOf(h.Name)
			used[f.Tools[i].Family] = i < familyHits || used[f.Tools[i].Family]
		}
	}
	all := isOverview(in)
	for _, one := range d.familiesFor(ctx) {
		if all || used[one.Name] && one.Name != publishedFamily && one.Name != findingFamily {
			f.Families = append(f.Families, one)
		}
	}
	return f, nil
}

// familyHits is how many of the best tools have their families shown.
const familyHits = 3

// isOverview reports whether a search asks for everything there is.
func isOverview(in searchIn) bool { return in.texts()[0] == "" && in.Namespace == "" }

// query returns the search to make, and the family of our own tools to which it is
// limited. In an overview our own tools are shown by family only.
func (d discovery) query(ctx context.Context, in searchIn) (q catalog.Query, family string, err error) {
	texts := in.texts()
	q = catalog.Query{Text: texts[0], Others: texts[1:], Namespace: in.Namespace, Limit: in.limit()}
	if isOverview(in) {
		q.Only = func(namespace string) bool { return namespace != "" }
		return q, "", nil
	}
	if _, ok := d.catalog.In(ctx, in.Namespace); ok || in.Namespace == "" {
		return q, "", nil
	}
	isFamily := in.Namespace == publishedFamily || slices.ContainsFunc(families, func(f Family) bool { return f.Name == in.Namespace })
	if !isFamily && in.Namespace != ownNamespace {
		return q, "", d.unknownNamespace(ctx, in.Namespace)
	}
	q.Namespace, q.Only = "", func(namespace string) bool { return namespace == "" }
	if isFamily {
		family, q.Limit = in.Namespace, math.MaxInt32
	}
	return q, family, nil
}

// ofFamily returns the tools of a family among those found, at most limit, and how many
// there are.
func ofFamily(hits []catalog.Hit, family string, limit int) (found []catalog.Hit, total int) {
	found = slices.DeleteFunc(hits, func(h catalog.Hit) bool { return familyOf(h.Name) != family })
	return found[:min(len(found), limit)], len(found)
}

func (d discovery) unknownNamespace(ctx context.Context, namespace string) error {
	known := d.catalog.Namespaces(ctx)
	for _, f := range d.familiesFor(ctx) {
		known = append(known, f.Name)
	}
	err := fault.New(fault.InvalidParams, "no namespace %q", namespace).WithDetails(map[string]any{"available": known})
	if close := suggest.Names(namespace, known, 3); len(close) > 0 {
		return err.WithHint("did you mean %s?", strings.Join(close, " or "))
	}
	return err.WithHint("available: %s", strings.Join(known, ", "))
}

type callIn struct {
	Name      string `json:"name" jsonschema:"as search_tools gives it, such as namespace.tool"`
	Arguments Object `json:"arguments,omitempty" jsonschema:"as its input schema says"`
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
			WithHint("call %s { … }", ref.ScriptPath())
	}
	meta := call.Meta
	if rawjson.IsObject(meta) { // our own keys are not passed on
		meta = rawjson.Delete(meta, FullKey)
	}
	return d.catalog.Call(ctx, tool.Call{
		Ref: ref, Args: json.RawMessage(in.Arguments), Meta: meta, Caller: call.Caller, Task: call.Task,
	})
}

// Brief returns the first paragraph of a description, at most so many bytes.
func Brief(text string, limit int) string { return opening(text, limit) }

// brief returns the first paragraph of a description, at most 240 bytes.
func brief(text string) string { return opening(text, 240) }

// opening returns the first paragraph of a description, at most so many bytes.
func opening(text string, limit int) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n\n")
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= limit {
		return text
	}
	end := limit
	for !utf8.RuneStart(text[end]) {
		end--
	}
	if space := strings.LastIndexByte(text[:end], ' '); space > limit/2 {
		end = space
	}
	return text[:end] + " …"
}
