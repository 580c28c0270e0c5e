package script

import (
	"context"
	"iter"
	"regexp"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/module/mcp"
)

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
