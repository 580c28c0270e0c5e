package agent

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/plural"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/chat/llm"
	"github.com/luanette/luanette/internal/core/tool"
)

// toolbox is the tools of one turn: what the model is offered, and the tool of each
// name.
type toolbox struct {
	offered []llm.Tool
	refs    map[string]tool.Ref   // all tools by the model's name for them, offered or not
	hints   map[string]tool.Hints // of refs
	local   map[string]func(ctx context.Context, input json.RawMessage) (string, error)
	client  map[string]bool // names of the client's own tools
	groups  []group
}

// group is the tools of one server, or the published scripts.
type group struct {
	space        string
	name         string // display name
	problem, url string // of its Server
	tools        []tool.Info
	away         bool // currently unreachable
	direct       bool // its tools are offered individually
}

// discover finds the tools of this turn. If they cannot be listed, the turn continues
// without tools.
func (t *turn) discover(ctx context.Context) {
	box := &toolbox{
		refs: map[string]tool.Ref{}, hints: map[string]tool.Hints{}, client: map[string]bool{},
		local: map[string]func(context.Context, json.RawMessage) (string, error){},
	}
	t.tools = box
	for _, theirs := range t.request.ClientTools.Tools { // first, because their names cannot be changed
		box.client[theirs.Name] = true
	}
	expected := t.expected(ctx)
	t.note(ctx, slog.LevelInfo, "mcp_discovery_start", slog.Int("server_count", len(expected)))
	began := time.Now()
	if t.memory != nil {
		t.offerMemory(box)
	}
	var all []tool.Info
	if source := t.agent.options.Tools; source != nil {
		var err error
		if all, err = source.Tools(t.scoped(ctx)); err != nil {
			t.note(ctx, slog.LevelError, "mcp_discovery_error", slog.String("error", loggable(err)))
			t.notice("tools_away", "the tools could not be listed; this answer does not use them")
		}
	}
	core, scripts, servers := t.sort(all)
	box.groups = t.group(scripts, servers, expected)
	t.chooseDirect(box.groups, len(core) > 0)
	for _, info := range core {
		box.offer(&info, true)
	}
	for _, g := range box.groups {
		for i := range g.tools {
			box.offer(&g.tools[i], g.direct)
		}
	}
	for _, theirs := range t.request.ClientTools.Tools { // last: ours are the same for all clients
		theirs.Input = acceptable(theirs.Input)
		box.offered = append(box.offered, theirs)
	}
	t.reportUnreachable(ctx)
	t.note(ctx, slog.LevelInfo, "mcp_discovery_complete", slog.Int("tools_found", len(scripts)+len(servers)),
		slog.Int64("duration_ms", time.Since(began).Milliseconds()), slog.Int("tools_offered", len(box.offered)))
}

// sort separates the tools that are always offered from scripts and servers' tools.
func (t *turn) sort(all []tool.Info) (core, scripts, servers []tool.Info) {
	for i := range all {
		info := all[i]
		switch {
		case !t.allows(t.namespaced(info.Ref)):
		case info.Space != "":
			servers = append(servers, info)
		case slices.Contains(t.agent.options.Core, info.Name):
			core = append(core, info)
		case t.agent.options.Own != nil && t.agent.options.Own(info.Name):
			scripts = append(scripts, info)
		}
	}
	return core, scripts, servers
}

// chooseDirect decides which servers' tools are offered individually. Without tools to
// find and run others, all are. Unreachable servers keep their place, so that the prompt
// does not change with every disconnection.
func (t *turn) chooseDirect(groups []group, searchable bool) {
	offer, left := t.agent.options.Offer, t.limits.DirectTools
	for i := range groups {
		g := &groups[i]
		if !searchable || offer == Direct {
			g.direct = true
		} else if offer == Auto && len(g.tools) <= left {
			g.direct = true
			left -= len(g.tools)
		}
	}
}

// offer gives a tool its name and, if it is to be called directly, offers it.
func (b *toolbox) offer(info *tool.Info, directly bool) {
	name := b.name(info.Ref)
	b.refs[name], b.hints[name] = info.Ref, info.Hints
	if directly {
		b.offered = append(b.offered, llm.Tool{Name: name, Description: redact.Cut(info.Description, longestDescription), Input: inputFor(info)})
	}
}

// split separates calls of our tools from calls of the client's.
func (b *toolbox) split(uses []llm.Use) (own, theirs []llm.Use) {
	for _, use := range uses {
		if b.client[use.Name] {
			theirs = append(theirs, use)
		} else {
			own = append(own, use)
		}
	}
	return own, theirs
}

// longestDescription limits a tool's description for the model.
const longestDescription = 8 << 10

// inputFor returns the schema the model sees. The session of lua_eval is chosen by the
// agent, not by the model.
func inputFor(info *tool.Info) json.RawMessage {
	schema := acceptable(info.Input)
	if info.Ref == luaEval {
		return without(schema, sessionKey)
	}
	return schema
}

// acceptable removes from a schema what providers refuse, because they refuse the whole
// request with it. What is removed is still checked when the tool is called.
func acceptable(schema json.RawMessage) json.RawMessage {
	anything := json.RawMessage(`{"type":"object"}`)
	if !rawjson.IsObject(schema) || !json.Valid(schema) {
		return anything
	}
	for _, key := range []string{"oneOf", "anyOf", "allOf"} {
		schema = rawjson.Delete(schema, key)
	}
	if kind, _ := rawjson.GetText(schema, "type"); kind != "object" {
		schema = rawjson.SetText(schema, "type", "object")
	}
	properties, _ := rawjson.Get(schema, "properties")
	odd := false
	rawjson.Each(properties, func(name string, _ json.RawMessage) bool {
		odd = !propertyName().MatchString(name)
		return !odd
	})
	if odd {
		return anything
	}
	return schema
}

// propertyName matches parameter names that providers accept.
var propertyName = lazyregexp.New(`^[a-zA-Z0-9_.-]{1,64}$`)

// without returns an object schema without a property.
func without(schema json.RawMessage, property string) json.RawMessage {
	properties, ok := rawjson.Get(schema, "properties")
	if !ok {
		return schema
	}
	return rawjson.Set(schema, "properties", rawjson.Delete(properties, property))
}

// shown returns the display name of a tool that the model named.
func (b *toolbox) shown(name string) string {
	if ref, ok := b.refs[name]; ok {
		return ref.String()
	}
	return name
}

// called returns the display name of the tool that a call is about: that of call_tool names
// another one.
func (b *toolbox) called(use llm.Use) string {
	if b.refs[use.Name].IsRelay() {
		if name, ok := rawjson.GetText(use.Input, "name"); ok && name != "" {
			return name
		}
	}
	return b.shown(use.Name)
}

// repeatable reports whether a call that may have happened may be made again. The tools
// of the memory replace what they wrote.
func (b *toolbox) repeatable(name string) bool {
	_, local := b.local[name]
	return local || b.hints[name].Repeatable()
}

// names are the ids of servers that are called otherwise than their namespaces.
func (t *turn) names() map[string]string {
	names := map[string]string{}
	for _, s := range t.request.Servers {
		if s.Problem == "" && s.id() != s.Space {
			names[s.id()] = s.Space
		}
	}
	return names
}

// namespaced returns a tool of a server's id with the server's namespace.
func (t *turn) namespaced(ref tool.Ref) tool.Ref {
	for _, s := range t.request.Servers {
		if s.Problem == "" && s.id() == ref.Space {
			return tool.Ref{Space: s.Space, Name: ref.Name}
		}
	}
	return ref
}

// allows reports whether the turn may use a tool. A Ref without a name stands for its
// namespace.
func (t *turn) allows(ref tool.Ref) bool {
	if ref.Space == "" {
		o := &t.agent.options
		return ref.Name == "" || slices.Contains(o.Core, ref.Name) || o.Own != nil && o.Own(ref.Name) || o.Callable != nil && o.Callable(ref.Name)
	}
	if t.request.Servers == nil {
		return t.agent.options.Servers == nil || t.agent.options.Servers(ref.Space)
	}
	return slices.ContainsFunc(t.request.Servers, func(s Server) bool {
		return s.Space == ref.Space && (ref.Name == "" || s.Tools == nil || slices.Contains(s.Tools, ref.Name))
	})
}

// Namespaced is a source that knows its namespaces even if their tools are unknown.
type Namespaced interface {
	Namespaces(ctx context.Context) []string
}

// expected returns the servers that should have tools: those of the request, or all.
func (t *turn) expected(ctx context.Context) []Server {
	source, ok := t.agent.options.Tools.(Namespaced)
	if t.request.Servers != nil || !ok {
		return t.request.Servers
	}
	var all []Server
	for _, space := range source.Namespaces(t.scoped(ctx)) {
		all = append(all, Server{Space: space})
	}
	return all
}

// group puts scripts first, then servers in the order of expected.
func (t *turn) group(scripts, servers []tool.Info, expected []Server) []group {
	var groups []group
	if len(scripts) > 0 {
		groups = append(groups, group{name: "Scripts", tools: scripts})
	}
	at := map[string]int{}
	for _, s := range expected {
		if _, twice := at[s.id()]; !twice {
			at[s.id()] = len(groups)
			groups = append(groups, group{space: s.id(), name: s.Name, problem: s.Problem, url: s.URL})
		}
	}
	for _, info := range servers {
		i, known := at[info.Space]
		if !known {
			i = len(groups)
			at[info.Space] = i
			groups = append(groups, group{space: info.Space})
		}
		groups[i].tools = append(groups[i].tools, info)
	}
	for i := range groups {
		g := &groups[i]
		g.away = g.space != "" && !slices.ContainsFunc(g.tools, func(info tool.Info) bool { return !info.Stale }) && (len(g.tools) == 0 || !t.asleep(g.space))
	}
	return groups
}

// asleep reports whether a server starts with its next call.
func (t *turn) asleep(space string) bool {
	return t.agent.options.Asleep != nil && t.agent.options.Asleep(t.namespaced(tool.Ref{Space: space}).Space)
}

// reportUnreachable reports servers that are unreachable: in the log always, and to the person
// unless the last answer of the conversation knew it already.
func (t *turn) reportUnreachable(ctx context.Context) {
	t.reply.Away = nil
	for _, g := range t.tools.groups {
		if g.away {
			t.reply.Away = append(t.reply.Away, g.space)
			address, why := g.url, g.problem
			if why == "" && t.agent.options.Unreachable != nil {
				address, why = t.agent.options.Unreachable(t.namespaced(tool.Ref{Space: g.space}).Space)
			}
			t.note(ctx, slog.LevelError, "mcp_discovery_error", slog.String("server", g.space), slog.String("server_url", address),
				slog.String("error", cmp.Or(why, "unavailable")))
			if slices.Contains(t.request.Away(), g.space) {
				continue
			}
			if len(g.tools) == 0 { // a connected server may have none that can be used, such as tools that wait for approval
				t.notice("server_away", "no tools of %s can be used now: it is not connected, or they wait for approval", g.title())
				continue
			}
			t.notice("server_away", "%s is currently unreachable", g.title())
		}
	}
}

func (g group) title() string {
	switch {
	case g.name == "" || g.name == g.space:
		return g.space
	case g.space == "":
		return g.name
	default:
		return g.name + " (" + g.space + ")"
	}
}

// longestMenu limits the size of the tool list in the system prompt, in bytes. Longer
// lists have less detail.
const longestMenu = 16 << 10

// menu lists the servers' tools, grouped by server and in a stable order, in as much
// detail as fits. It has no examples, because models take them for facts.
func (b *toolbox) menu() string {
	if len(b.groups) == 0 {
		return "## Available tools\n\nNo servers are connected."
	}
	var text string
	for _, detail := range []func(group, *strings.Builder){group.lines, group.names, group.count} {
		var menu strings.Builder
		menu.WriteString("## Available tools\n")
		for _, g := range b.groups {
			fmt.Fprintf(&menu, "\n### %s\n", oneLine(g.title(), 160))
			if g.direct { // they are offered with their definitions
				g.names(&menu)
			} else {
				detail(g, &menu)
			}
		}
		if text = strings.TrimSpace(menu.String()); len(text) <= longestMenu {
			return text
		}
	}
	return redact.Cut(text, longestMenu) + "\n(search_tools finds the rest)"
}

// lines writes a line for each tool.
func (g group) lines(out *strings.Builder) {
	for _, info := range g.tools {
		fmt.Fprintf(out, "- %s: %s\n", info.Ref, brief(info.Description))
	}
	g.empty(out)
}

// names writes the names only.
func (g group) names(out *strings.Builder) {
	names := make([]string, len(g.tools))
	for i, info := range g.tools {
		names[i] = info.Ref.String()
	}
	if len(names) > 0 {
		fmt.Fprintln(out, strings.Join(names, ", "))
	}
	g.empty(out)
}

// count writes only the number of tools.
func (g group) count(out *strings.Builder) {
	if len(g.tools) > 0 {
		fmt.Fprintf(out, "%s; search_tools with this namespace lists them\n", plural.Count(len(g.tools), "tool"))
	}
	g.empty(out)
}

func (g group) empty(out *strings.Builder) {
	if len(g.tools) == 0 {
		out.WriteString("(its tools are currently unknown)\n")
	}
}

// longestBrief limits the description of one tool.
const longestBrief = 80

// brief returns the first sentence of a description.
func brief(text string) string {
	text = oneLine(text, 4*longestBrief)
	for i, c := range text {
		if c == '.' && (i+1 == len(text) || text[i+1] == ' ') {
			text = text[:i]
			break
		}
	}
	if text == "" {
		return "no description"
	}
	if len(text) <= longestBrief {
		return text
	}
	text = strings.TrimSuffix(redact.Cut(text, longestBrief), "…")
	if space := strings.LastIndexByte(text, ' '); space > longestBrief/2 {
		text = text[:space]
	}
	return text + "..."
}

// oneLine converts untrusted text to one line of a list, so that it cannot begin a new
// line or heading.
func oneLine(text string, limit int) string {
	text = redact.Cut(text, 4*limit)
	text = strings.Join(strings.FieldsFunc(text, func(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }), " ")
	return redact.Cut(text, limit)
}

// longestName is the longest tool name that every provider allows.
const longestName = 64

// name returns the model's name for a tool: its namespace and name in characters that
// providers allow. A name that is too long, or used by another tool, ends in part of a
// hash. The tool of a name is looked up in a map, never parsed from it.
func (b *toolbox) name(ref tool.Ref) string {
	name := plain(ref.Name)
	if ref.Space != "" {
		name = plain(ref.Space) + "__" + name
	}
	if len(name) <= longestName && name != "" && b.free(name) {
		return name
	}
	sum := sha256.Sum256([]byte(ref.Space + "\x00" + ref.Name))
	hash := hex.EncodeToString(sum[:])
	for digits := 10; ; digits++ {
		tail := "_" + hash[:digits]
		if longer := name[:min(len(name), longestName-len(tail))] + tail; b.free(longer) {
			return longer
		}
	}
}

func (b *toolbox) free(name string) bool {
	_, taken := b.refs[name]
	_, own := b.local[name]
	return !taken && !own && !b.client[name]
}

func plain(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
			return c
		default:
			return '_'
		}
	}, name)
}
