package script

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/lua"
)

// suggestFunction helps when a script called something that does not exist: a global
// function, one of a module, or most often a tool with a slightly different name.
func (e *Error) suggestFunction(ctx context.Context, r *Runner, global bool, name string) {
	known := documented(r.Modules())
	if global {
		if tools := r.toolNames(ctx); !e.suggestQuoted(tools) && !e.suggestPlain(tools, name) {
			e.suggestGlobal(known, name)
		}
		return
	}
	for library, functions := range luaFunctions() {
		known[library] = append(known[library], functions...)
	}
	if module := moduleBefore(e.SourceLine, name); module != "" && module != "mcp" && known[module] != nil {
		e.suggestMemberOf(module, name, known[module])
		return
	}
	e.suggestTool(ctx, r, name)
}

// suggestMemberOf helps with an undefined function of a module.
func (e *Error) suggestMemberOf(module, name string, functions []string) {
	functions = slices.Compact(slices.Sorted(slices.Values(functions)))
	e.didYouMean(name, functions)
	e.Troubleshooting = append(e.Troubleshooting, "Functions of "+module+": "+strings.Join(functions, ", "))
}

// suggestPlain helps with a tool that was called by its plain name, as job_list{}.
func (e *Error) suggestPlain(tools toolNames, name string) bool {
	paths := tools.spelled(name)
	if len(paths) == 0 || len(paths) > 5 {
		return false
	}
	e.hint("Did you mean '" + strings.Join(paths, "', '") + "'?")
	return true
}

// suggestSpace helps with a namespace without its mcp, as fs.read_file{}.
func (e *Error) suggestSpace(tools toolNames, name string) bool {
	if !slices.Contains(tools.spaces(), name) {
		return false
	}
	e.hint("Did you mean '" + tool.Ref{Space: name}.ScriptPath() + "'?")
	return true
}

func (e *Error) suggestGlobal(known map[string][]string, name string) {
	if advice := absentGlobals[name]; advice != "" {
		e.Suggestions = append(e.Suggestions, advice)
		return
	}
	if !e.suggestModuleOf(name, known) {
		e.didYouMean(name, append(known[""], luaGlobals...))
	}
}

// suggestIndexed helps with an undefined global whose field was read, such as a module of
// another program: list_dir for rust.list_dir. It reports whether it could.
func (e *Error) suggestIndexed(known map[string][]string, name string) bool {
	m := regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\.(\w+)`).FindStringSubmatch(e.SourceLine)
	switch {
	case m == nil:
		return false
	case slices.Contains(known[""], m[1]):
		e.hint("Did you mean '" + m[1] + "'?")
		return true
	default:
		return e.didYouMean(name, append(slices.Collect(maps.Keys(known)), luaLibraries...)) || e.suggestModuleOf(m[1], known)
	}
}

// suggestModuleOf reports whether modules have a function of that name, and names them:
// parallel.spawn for spawn.
func (e *Error) suggestModuleOf(name string, known map[string][]string) bool {
	var paths []string
	for module, functions := range known {
		if module != "" && slices.Contains(functions, name) {
			paths = append(paths, module+"."+name)
		}
	}
	slices.Sort(paths)
	if len(paths) > 0 {
		e.Suggestions = append(e.Suggestions, "Did you mean '"+strings.Join(paths, "', '")+"'?")
	}
	return len(paths) > 0
}

// luaFunctions are the functions of Lua's own libraries, by library.
var luaFunctions = sync.OnceValue(func() map[string][]string {
	state, functions := lua.New(lua.Options{}), map[string][]string{}
	if state.Open(sandbox()...) != nil {
		return functions
	}
	for key, value := range state.Globals().All() {
		library, _ := key.AsString()
		members, ok := value.AsTable()
		if !ok || library == "_G" {
			continue
		}
		for key, value := range members.All() {
			if _, ok := value.AsFunction(); ok {
				name, _ := key.AsString()
				functions[library] = append(functions[library], name)
			}
		}
	}
	return functions
})

// luaGlobals are Lua's own functions that are called most.
var luaGlobals = []string{"assert", "error", "ipairs", "next", "pairs", "pcall", "select", "setmetatable", "tonumber", "tostring", "type"}

// absentGlobals maps functions that Lua programmers expect and the sandbox lacks to
// advice.
var absentGlobals = map[string]string{
	"dofile":     "There is no dofile: a published script is called as mcp.<name>{ ... }",
	"loadfile":   "There is no loadfile: a published script is called as mcp.<name>{ ... }",
	"loadstring": "This is Lua 5.4: use load",
	"unpack":     "This is Lua 5.4: use table.unpack",
}

// suggestTool suggests tools with similar names, those that stand where the script looked
// before others, and lists what is available.
func (e *Error) suggestTool(ctx context.Context, r *Runner, name string) {
	tools := r.toolNames(ctx)
	if e.suggestHidden(ctx, r) || e.suggestQuoted(tools) {
		return
	}
	available := tools.first(e.SourceLine)
	if beside := tools.beside(e.SourceLine, name); !e.meant(name, beside.names(), beside.path) {
		e.meant(name, available.names(), available.path)
	}
	if list := available.list(20); list != "" {
		e.Troubleshooting = append(e.Troubleshooting, "Tool name typo? Available tools: "+list)
	}
}

func (e *Error) suggestNamespace(ctx context.Context, r *Runner, name string) {
	if e.suggestHidden(ctx, r) {
		return
	}
	tools := r.toolNames(ctx)
	spaces := tools.spaces()
	if len(spaces) == 0 || !strings.Contains(e.SourceLine, "mcp") {
		return // something else is nil
	}
	if e.suggestQuoted(tools) {
		return
	}
	e.meant(name, spaces, writtenSpace)
	for i := range spaces {
		spaces[i] = writtenSpace(spaces[i])
	}
	e.Troubleshooting = append(e.Troubleshooting, "Namespaces under mcp: "+strings.Join(spaces, ", "))
}

// suggestQuoted helps with a namespace or tool that was written as an identifier and is
// none: mcp.my-wiki and mcp.wiki.get-page are subtractions.
func (e *Error) suggestQuoted(tools toolNames) bool {
	for _, space := range tools.spaces() {
		if written := writtenSpace(space); written != space && strings.Contains(e.SourceLine, "mcp."+space) {
			e.hint(fmt.Sprintf("Write %s: %q is not an identifier", written, space))
			return true
		}
	}
	longest := reachable{}
	for _, one := range tools {
		if len(one.name) > len(longest.name) && identifier(one.name) != one.name && strings.Contains(e.SourceLine, "mcp."+one.ref().String()) {
			longest = one
		}
	}
	if longest.name == "" {
		return false
	}
	written := longest.path()
	if longest.space != "" { // published scripts are only found by their exact names
		written = reachable{longest.space, identifier(longest.name)}.path() + " or " + written
	}
	e.hint(fmt.Sprintf("Write %s: %q is not an identifier", written, longest.name))
	return true
}

var mentionedTool = lazyregexp.New(`\bmcp\.(\w+)\.(\w+)`)

// suggestHidden reports whether the missing tool exists but may not be used, and says why.
func (e *Error) suggestHidden(ctx context.Context, r *Runner) bool {
	source, ok := r.options.Tools.(interface {
		WhyHidden(ctx context.Context, name string) error
	})
	if !ok {
		return false
	}
	for _, m := range mentionedTool().FindAllStringSubmatch(e.SourceLine, -1) {
		if err := source.WhyHidden(ctx, m[1]+"."+m[2]); err != nil {
			e.Suggestions = append(e.Suggestions, err.Error(), fault.HintOf(err))
			return true
		}
	}
	return false
}

// didYouMean suggests known names that are similar. The name itself is not there, whatever the
// pages of modules say.
func (e *Error) didYouMean(name string, known []string) bool {
	known = slices.DeleteFunc(slices.Clone(known), func(one string) bool { return one == name })
	return e.meant(name, known, func(name string) string { return name })
}

// meant suggests known names that are similar, as written. It reports whether there are any.
func (e *Error) meant(name string, known []string, written func(string) string) bool {
	known = slices.Compact(slices.Sorted(slices.Values(known)))
	near := suggest.Names(name, known, 3)
	if len(near) == 0 {
		return false
	}
	for i := range near {
		near[i] = written(near[i])
	}
	e.Suggestions = append(e.Suggestions, "Did you mean '"+strings.Join(near, "', '")+"'?")
	return true
}

// moduleBefore returns the name before the dot in "module.name" on a line.
func moduleBefore(line, name string) string {
	if m := regexp.MustCompile(`(?:^|[^\w.])(\w+)\.` + regexp.QuoteMeta(name) + `\b`).FindStringSubmatch(line); m != nil {
		return m[1]
	}
	return ""
}

var pageHeading = lazyregexp.New(`(?m)^## (?:(\w+)\.)?(\w+)\(`)

// documented returns the functions that the pages of modules describe, by module;
// globals are under "".
func documented(modules []host.Module) map[string][]string {
	functions := map[string][]string{}
	for i := range modules {
		for _, m := range pageHeading().FindAllStringSubmatch(modules[i].Page, -1) {
			functions[m[1]] = append(functions[m[1]], m[2])
		}
	}
	return functions
}

// toolNames are the tools a script can call, for advice. Those without a namespace are our
// own and published scripts.
type toolNames []reachable

type reachable struct{ space, name string }

// toolNames asks the catalog, which answers from memory.
func (r *Runner) toolNames(ctx context.Context) toolNames {
	if r.options.Tools == nil {
		return nil
	}
	infos, err := r.options.Tools.Tools(context.WithoutCancel(ctx))
	if err != nil {
		return nil // advice is not worth an error
	}
	var names toolNames
	for _, info := range infos {
		names = append(names, reachable{info.Space, info.Name})
	}
	return names
}

// first puts the tools of the namespaces that a line of the script mentions before the
// others.
func (t toolNames) first(line string) toolNames {
	spoken := map[string]bool{}
	for _, space := range t.spaces() {
		spoken[space] = regexp.MustCompile(`\b` + regexp.QuoteMeta(space) + `\b`).MatchString(line)
	}
	sorted := slices.Clone(t)
	slices.SortStableFunc(sorted, func(a, b reachable) int {
		switch {
		case spoken[a.space] == spoken[b.space]:
			return 0
		case spoken[a.space]:
			return -1
		default:
			return 1
		}
	})
	return sorted
}

// beside returns the tools of the namespace in which a line looks for a name.
func (t toolNames) beside(line, name string) toolNames {
	m := regexp.MustCompile(`\bmcp\.(?:(\w+)[.:])?` + regexp.QuoteMeta(name) + `\b`).FindStringSubmatch(line)
	if m == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(t), func(one reachable) bool { return identifier(one.space) != m[1] })
}

func (t toolNames) names() []string {
	names := make([]string, len(t))
	for i, one := range t {
		names[i] = one.name
	}
	return names
}

// spelled returns how to write the tools whose name is written as an identifier.
func (t toolNames) spelled(name string) (paths []string) {
	for _, one := range t {
		if identifier(one.name) == name {
			paths = append(paths, one.path())
		}
	}
	return paths
}

// spaces returns the namespaces without duplicates, in order.
func (t toolNames) spaces() []string {
	var spaces []string
	for _, one := range t {
		if one.space != "" && (len(spaces) == 0 || spaces[len(spaces)-1] != one.space) {
			spaces = append(spaces, one.space)
		}
	}
	return spaces
}

// writtenSpace returns a namespace, or how to write it if it is not an identifier.
func writtenSpace(space string) string {
	if tool.Identifier(space) == space {
		return space
	}
	return tool.Ref{Space: space}.ScriptPath()
}

// path returns how to write the first tool of that name.
func (t toolNames) path(name string) string {
	i := slices.IndexFunc(t, func(one reachable) bool { return one.name == name })
	if i < 0 {
		return name
	}
	return t[i].path()
}

func (r reachable) ref() tool.Ref { return tool.Ref{Space: r.space, Name: r.name} }

// path returns the tool as it can be pasted into a script.
func (r reachable) path() string { return r.ref().ScriptPath() }

// list returns the first few names of those that have a namespace; our own are in help.
func (t toolNames) list(limit int) string {
	var names []string
	for _, one := range t {
		if one.space == "" {
			continue
		}
		if len(names) == limit {
			names = append(names, "…")
			break
		}
		names = append(names, one.path())
	}
	return strings.Join(names, ", ")
}

var (
	nameExpected = lazyregexp.New(`^[^:]*:(\d+): <name> expected near '([a-z]+)'`)
	dottedWord   = lazyregexp.New(`([\w.]+)\.([a-z]+)\b`)
)

// reservedField says how a field is written whose name is a word of the language, as the tool
// mcp.x.end; "" if the message of the syntax error is about something else.
func reservedField(source, message string) string {
	m := nameExpected().FindStringSubmatch(message)
	if m == nil {
		return ""
	}
	line, _ := strconv.Atoi(m[1])
	lines := strings.Split(source, "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	for _, field := range dottedWord().FindAllStringSubmatch(lines[line-1], -1) {
		if field[2] == m[2] {
			return fmt.Sprintf("'%s' is a word of Lua, so the name is written in brackets: %s[%q]", m[2], field[1], m[2])
		}
	}
	return ""
}
