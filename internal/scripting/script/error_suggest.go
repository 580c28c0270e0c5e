package script

import (
	"context"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/module/mcp"
	"github.com/luanette/luanette/lua"
)

// suggestFunction helps when a script called something that does not exist: a global
// function, one of a module, or most often a tool with a slightly different name.
func (e *Error) suggestFunction(ctx context.Context, r *Runner, global bool, name string) {
	known := documented(r.Modules())
	if global {
		e.suggestGlobal(known, name)
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

func (e *Error) suggestGlobal(known map[string][]string, name string) {
	if advice := absentGlobals[name]; advice != "" {
		e.Suggestions = append(e.Suggestions, advice)
		return
	}
	if !e.suggestModuleOf(name, known) {
		e.didYouMean(name, append(known[""], luaGlobals...))
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

// suggestTool lists the available tools, those of the same namespace first.
func (e *Error) suggestTool(ctx context.Context, r *Runner, name string) {
	if e.suggestHidden(ctx, r) {
		return
	}
	available := r.toolNames(ctx).first(e.SourceLine)
	e.meant(name, slices.Collect(available.names()), available.path)
	if list := available.list(20); list != "" {
		e.Troubleshooting = append(e.Troubleshooting, "Tool name typo? Available tools: "+list)
	}
}

func (e *Error) suggestNamespace(ctx context.Context, r *Runner, name string) {
	if e.suggestHidden(ctx, r) {
		return
	}
	spaces := r.toolNames(ctx).spaces()
	if len(spaces) == 0 || !strings.Contains(e.SourceLine, "mcp") {
		return // something else is nil
	}
	if e.suggestQuoted(spaces) {
		return
	}
	e.meant(name, spaces, writtenSpace)
	for i := range spaces {
		spaces[i] = writtenSpace(spaces[i])
	}
	e.Troubleshooting = append(e.Troubleshooting, "Namespaces under mcp: "+strings.Join(spaces, ", "))
}

// suggestQuoted helps with a namespace that was written as an identifier and is none:
// mcp.my-wiki is a subtraction.
func (e *Error) suggestQuoted(spaces []string) bool {
	for _, space := range spaces {
		if written := writtenSpace(space); written != space && strings.Contains(e.SourceLine, "mcp."+space) {
			e.hint(fmt.Sprintf("Write %s: %q is not an identifier", written, space))
			return true
		}
	}
	return false
}

var mentionedTool = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bmcp\.(\w+)\.(\w+)`) })

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

func (e *Error) didYouMean(name string, known []string) {
	e.meant(name, known, func(name string) string { return name })
}

// meant suggests known names that are similar, as written.
func (e *Error) meant(name string, known []string, written func(string) string) {
	known = slices.Compact(slices.Sorted(slices.Values(known)))
	if near := suggest.Names(name, known, 3); len(near) > 0 {
		for i := range near {
			near[i] = written(near[i])
		}
		e.Suggestions = append(e.Suggestions, "Did you mean '"+strings.Join(near, "', '")+"'?")
	}
}

// moduleBefore returns the name before the dot in "module.name" on a line.
func moduleBefore(line, name string) string {
	if m := regexp.MustCompile(`(?:^|[^\w.])(\w+)\.` + regexp.QuoteMeta(name) + `\b`).FindStringSubmatch(line); m != nil {
		return m[1]
	}
	return ""
}

var pageHeading = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^## (?:(\w+)\.)?(\w+)\(`) })

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

// toolNames are the tools a script can call, for advice.
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
		if info.Space != "" {
			names = append(names, reachable{info.Space, info.Name})
		}
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

func (t toolNames) names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, one := range t {
			if !yield(one.name) {
				return
			}
		}
	}
}

// spaces returns the namespaces without duplicates, in order.
func (t toolNames) spaces() []string {
	var spaces []string
	for _, one := range t {
		if len(spaces) == 0 || spaces[len(spaces)-1] != one.space {
			spaces = append(spaces, one.space)
		}
	}
	return spaces
}

// writtenSpace returns a namespace, or how to write it if it is not an identifier.
func writtenSpace(space string) string {
	if mcp.Identifier(space) == space {
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

// path returns the tool as it can be pasted into a script.
func (r reachable) path() string { return tool.Ref{Space: r.space, Name: r.name}.ScriptPath() }

// list returns the first few names.
func (t toolNames) list(limit int) string {
	var names []string
	for i, one := range t {
		if i == limit {
			names = append(names, "…")
			break
		}
		names = append(names, one.path())
	}
	return strings.Join(names, ", ")
}
