// Package searchtools are the tools that find, describe and call all others.
package searchtools

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/results"
	"github.com/luanette/luanette/internal/tools/search"
	"github.com/luanette/luanette/internal/tools/toolset"
	"github.com/luanette/luanette/internal/tools/typedecl"
)

//go:embed *.md
var texts embed.FS

// Options are what the tools need to know beyond the catalog.
type Options struct {
	Shapes *results.Store        // learned shapes of results; nil: none
	Reads  func(*tool.Info) bool // whether a tool is read-only
	// Await waits until the tools of a namespace are known, or cannot be; may be nil.
	Await func(ctx context.Context, namespace string)
}

// Tools makes the tools that find and call other tools.
func Tools(c *catalog.Catalog, o Options) []toolset.Tool {
	d := discovery{c, o}
	return []toolset.Tool{
		toolset.Define(texts, "search_tools", tool.Hints{ReadOnly: true, ClosedWorld: true}, d.search),
		toolset.Define(texts, "get_tool_definitions", tool.Hints{ReadOnly: true, ClosedWorld: true}, d.definitions),
		toolset.Relay(texts, tool.CallToolRead, tool.Hints{ReadOnly: true}, d.callRead),
		toolset.Relay(texts, tool.CallTool, tool.Hints{}, d.call),
	}
}

type discovery struct {
	catalog *catalog.Catalog
	options Options
}

// callWith is the tool that calls a tool, if it is not call_tool.
func (d discovery) callWith(ctx context.Context, info *tool.Info) string {
	real := *info
	if real.Ref = d.catalog.Real(ctx, info.Ref); d.options.Reads(&real) {
		return tool.CallToolRead
	}
	return ""
}

type searchIn struct {
	Query     string   `json:"query,omitempty" jsonschema:"what it should do"`
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
	if result.Weak && in.Limit <= 0 {
		hits, result.Spaces = hits[:min(len(hits), weakHits)], nil
	}
	f := Found{Tools: make([]FoundTool, len(hits)), Total: total, Servers: servers(result.Spaces), Note: noteOf(&result, len(hits))}
	for i := range hits {
		f.Tools[i] = d.foundTool(ctx, &hits[i])
	}
	distinguish(f.Tools, hits)
	f.Families = d.familiesFor(ctx)
	if !isOverview(in) {
		f.Families = familiesBeside(f.Tools, f.Families)
	}
	return f, nil
}

// foundTool is the short form of a tool found.
func (d discovery) foundTool(ctx context.Context, h *catalog.Hit) FoundTool {
	with := d.callWith(ctx, &h.Info)
	found := FoundTool{
		Name: h.Ref.String(), Script: inScripts(h.Ref), Signature: typedecl.Signature(h.Input), Description: builtin.Brief(h.Description, foundLength),
		ReadOnly: with != "", CallWith: with, Stale: h.Stale,
	}
	if h.Space == "" {
		found.Family = familyOf(h.Name)
	}
	return found
}

// distinguish finds the words that tell each tool found from its siblings: tools of the same
// namespace whose names share a word with its name.
func distinguish(found []FoundTool, hits []catalog.Hit) {
	names := make([][]string, len(hits))
	for i := range hits {
		search.EachWord(hits[i].Name, func(word string) { names[i] = append(names[i], word) })
	}
	for i := range hits {
		var taken []string
		for j := range hits {
			isShared := func(word string) bool { return slices.Contains(names[j], word) }
			if i != j && hits[i].Space == hits[j].Space && slices.ContainsFunc(names[i], isShared) {
				taken = append(taken, names[j]...)
			}
		}
		if len(taken) > 0 {
			isTaken := func(word string) bool { return slices.Contains(taken, word) }
			found[i].Distinct = strings.Join(slices.DeleteFunc(slices.Clone(names[i]), isTaken), " ")
		}
	}
}

// familyHits is how many of the best tools have their families shown.
const familyHits = 3

// familiesBeside returns those of all families that the best tools are used together with.
func familiesBeside(found []FoundTool, all []Family) []Family {
	best := found[:min(len(found), familyHits)]
	return slices.DeleteFunc(all, func(one Family) bool {
		isShown := slices.ContainsFunc(best, func(t FoundTool) bool { return t.Family == one.Name })
		return !isShown || one.Name == publishedFamily || one.Name == findingFamily
	})
}

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
	Name      string         `json:"name" jsonschema:"namespace.tool"`
	Arguments toolset.Object `json:"arguments,omitempty" jsonschema:"as its input schema says"`
}

// callRead calls a tool that only reads, whatever it leads to. While its server starts, that
// is not known.
func (d discovery) callRead(ctx context.Context, call tool.Call, in callIn) (tool.Result, error) {
	if space, _, found := strings.Cut(strings.TrimPrefix(in.Name, "mcp."), "."); found && d.options.Await != nil {
		if _, err := d.catalog.Resolve(ctx, in.Name); err != nil {
			d.options.Await(ctx, space)
		}
	}
	return d.call(tool.OnlyReading(ctx), call, in)
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
		meta = rawjson.Delete(meta, builtin.FullKey)
	}
	return d.catalog.Call(ctx, tool.Call{
		Ref: ref, Args: json.RawMessage(in.Arguments), Meta: meta, Caller: call.Caller, Task: call.Task,
	})
}

// Found is the result of search_tools.
type Found struct {
	Tools    []FoundTool   `json:"tools" jsonschema:"best match first"`
	Total    int           `json:"total" jsonschema:"how many tools matched"`
	Servers  []FoundServer `json:"servers,omitempty"`
	Note     string        `json:"note,omitempty" jsonschema:"why no tool fits well"`
	Families []Family      `json:"families,omitempty" jsonschema:"our own tools that are used together with those found"`
}

// FoundServer is a server with tools that match.
type FoundServer struct {
	Name     string   `json:"name"`
	Matched  int      `json:"matched"`
	Families []string `json:"families,omitempty"`
}

// FoundTool is one tool found, in short form.
type FoundTool struct {
	Name        string `json:"name" jsonschema:"for get_tool_definitions and to call it"`
	Script      string `json:"script,omitempty" jsonschema:"how scripts write it, if not mcp.NAME"`
	Signature   string `json:"signature" jsonschema:"arguments it takes; a question mark marks optional ones"`
	Description string `json:"description" jsonschema:"beginning of the description"`
	Distinct    string `json:"distinct,omitempty"`
	Family      string `json:"family,omitempty" jsonschema:"of a tool of our own"`
	ReadOnly    bool   `json:"read_only,omitempty" jsonschema:"it only reads"`
	CallWith    string `json:"call_with,omitempty" jsonschema:"call_tool_read if it only reads; otherwise call_tool calls it"`
	Stale       bool   `json:"stale,omitempty" jsonschema:"its server is currently disconnected"`
}

// Text lists the tools, one paragraph each, and the families.
func (f Found) Text() string {
	var b strings.Builder
	if f.Note != "" {
		b.WriteString(f.Note + "\n")
	}
	switch {
	case len(f.Tools) == 0 && len(f.Families) == 0:
		return b.String() + "No tool matches. Try other words; an empty query lists all."
	case f.Total > len(f.Tools):
		fmt.Fprintf(&b, "%d of %d matching tools:\n", len(f.Tools), f.Total)
	}
	for _, t := range f.Tools {
		fmt.Fprintf(&b, "%s%s", t.Name, t.Signature)
		if t.Script != "" {
			fmt.Fprintf(&b, ", in scripts %s", t.Script)
		}
		if t.Distinct != "" {
			fmt.Fprintf(&b, " [%s]", t.Distinct)
		}
		if t.CallWith != "" {
			b.WriteString(", " + t.CallWith)
		}
		fmt.Fprintf(&b, "\n  %s\n", t.Description)
	}
	f.overview(&b)
	if len(f.Families) > 0 {
		b.WriteString("Luanette's own tools, by family:\n" + familyLines(f.Families))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// inScripts returns how scripts write a tool, if that is not mcp. and its name.
func inScripts(ref tool.Ref) string {
	if path := ref.ScriptPath(); path != "mcp."+ref.String() {
		return path
	}
	return ""
}

// foundLength is how much of a description search_tools shows, in bytes: eight tools must
// fit into 600 tokens.
const foundLength = 115

func servers(spaces []search.Space) []FoundServer {
	var all []FoundServer
	for _, s := range spaces {
		all = append(all, FoundServer{s.Name, s.Matched, s.Families})
	}
	return all
}

// weakHits is how many tools are shown if none fits well.
const weakHits = 3

// noteOf says why none of the tools shown fits well; nothing if one does.
func noteOf(found *catalog.Found, shown int) string {
	switch {
	case found.Foreign:
		return "Nothing fits well: words are compared with those of the servers. Ask in their language, mostly English."
	case found.Weak && shown > 0:
		return "Nothing fits well. These are the nearest; other words, or several wordings in queries, may find more."
	}
	return ""
}

// overview writes the servers.
func (f Found) overview(b *strings.Builder) {
	for _, s := range f.Servers {
		if s.Matched < 2 && len(s.Families) == 0 {
			continue
		}
		fmt.Fprintf(b, "%s: %d match", s.Name, s.Matched)
		if len(s.Families) > 0 {
			fmt.Fprintf(b, "; also about %s", strings.Join(s.Families, ", "))
		}
		b.WriteByte('\n')
	}
}

// Family is a group of our own tools that are used together. search_tools shows the names
// of a whole family with each of its tools that it finds.
type Family struct {
	Name  string   `json:"name"`
	Tools []string `json:"tools"`
}

// families are all our own tools; those that start something first.
var families = []Family{
	{findingFamily, []string{"search_tools", "get_tool_definitions", tool.CallToolRead, tool.CallTool, "result_read"}},
	{"code", []string{"execute_code", "lua_eval", "lua_preview", "lua_help"}},
	{"jobs", []string{"lua_execute", "job_poll", "job_status", "job_list", "job_stats", "job_logs", "job_cancel", "job_journal", "job_replay", "job_undo", "job_resume", "trace_get"}},
	{"schedules", []string{"schedule_list", "schedule_pause", "schedule_resume", "schedule_remove"}},
	{"sessions", []string{"session_create", "session_list", "session_fork", "session_reset", "session_script", "session_close"}},
	{"scripts", []string{"script_store", "script_search", "script_get", "lua_describe", "script_publish", "script_unpublish", "script_history"}},
	{"approvals", []string{"approval_list", "approval_status", "approval_decide", "approval_forget", "approval_delegate"}},
	{"resources", []string{"resource_search", "resource_read", "prompt_get"}},
	{"connections", []string{"mcp_list_upstreams", "mcp_status", "mcp_connect", "mcp_disconnect", "tools_refresh"}},
}

// The family of the tools that every client uses anyway, and that of published scripts.
const (
	findingFamily   = "tools"
	publishedFamily = "published"
)

// ownNamespace names all our own tools and published scripts in a search.
const ownNamespace = "luanette"

// familyOf returns the name of a tool's family.
func familyOf(name string) string {
	for _, f := range families {
		if slices.Contains(f.Tools, name) {
			return f.Name
		}
	}
	return publishedFamily
}

// familiesFor returns the families that the caller can use, with the tools it can use.
func (d discovery) familiesFor(ctx context.Context) []Family {
	own, _ := d.catalog.In(ctx, "")
	usable := func(name string) bool {
		return slices.ContainsFunc(own, func(info tool.Info) bool { return info.Name == name })
	}
	var found []Family
	for _, f := range families {
		f.Tools = slices.DeleteFunc(slices.Clone(f.Tools), func(name string) bool { return !usable(name) })
		found = append(found, f)
	}
	published := Family{Name: publishedFamily}
	for i := range own {
		if familyOf(own[i].Name) == publishedFamily {
			published.Tools = append(published.Tools, own[i].Name)
		}
	}
	found = append(found, published)
	return slices.DeleteFunc(found, func(f Family) bool { return len(f.Tools) == 0 })
}

// mostInFamily is how many names of a family are shown: there may be many published
// scripts.
const mostInFamily = 30

// familyLines lists families, one line each.
func familyLines(families []Family) string {
	var b strings.Builder
	for _, f := range families {
		names, more := f.Tools, ""
		if len(names) > mostInFamily {
			names, more = names[:mostInFamily], ", …"
		}
		b.WriteString("  " + f.Name + ": " + strings.Join(names, ", ") + more + "\n")
	}
	return b.String()
}
