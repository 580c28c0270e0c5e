package overlay

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/tool"
)

// Rule changes the tools of one namespace. The zero value changes nothing.
type Rule struct {
	Priority int               // of all tools
	Tools    map[string]int    // added for some tools, by the upstream's names
	Aliases  map[string]string // new names, and the upstream's names they stand for
}

func (r Rule) empty() bool { return r.Priority == 0 && len(r.Tools) == 0 && len(r.Aliases) == 0 }

// OverriddenBy returns the rule with other applied on top of it. Where both have a value,
// that of other counts.
func (r Rule) OverriddenBy(other Rule) Rule {
	r.Priority += other.Priority
	r.Tools, r.Aliases = over(r.Tools, other.Tools), over(r.Aliases, other.Aliases)
	for alias, original := range r.Aliases { // a tool has one name
		for later := range other.Aliases {
			if other.Aliases[later] == original && later != alias {
				delete(r.Aliases, alias)
			}
		}
	}
	return r
}

func over[V any](below, above map[string]V) map[string]V {
	all := maps.Clone(below)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, above)
	return all
}

// Validate reports what is wrong with a rule whatever tools there are.
func (r Rule) Validate() error {
	shown := map[string]string{}
	for _, alias := range slices.Sorted(maps.Keys(r.Aliases)) {
		original := r.Aliases[alias]
		switch {
		case !validName().MatchString(alias):
			return fault.New(fault.Config, "alias %q is not a name", alias).
				WithHint("use a letter, then up to 63 letters, digits, _ or -")
		case original == "" || original == alias:
			return fault.New(fault.Config, "alias %q stands for %q", alias, original).
				WithHint("write alias = \"the tool's own name\"")
		case shown[original] != "":
			return fault.New(fault.Config, "%s has two aliases, %s and %s", original, shown[original], alias).
				WithHint("a tool has one alias; its own name works as well")
		}
		shown[original] = alias
	}
	return nil
}

var validName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// applyRule returns a copy of the tools with the rule's names and priorities. Names
// that no tool has, or that another tool has already, are problems and change nothing.
func (one *namespace) applyRule(r Rule) []tool.Info {
	tools := slices.Clone(one.from)
	taken := map[string]int{}
	names := make([]string, len(tools))
	for i := range tools {
		taken[tools[i].Name], names[i] = i, tools[i].Name
		tools[i].Priority += r.Priority + r.Tools[tools[i].Name]
	}
	for _, name := range slices.Sorted(maps.Keys(r.Tools)) {
		if _, there := taken[name]; !there {
			one.addProblem("priorities: it has no tool %q%s", name, didYouMean(name, names))
		}
	}
	for _, alias := range slices.Sorted(maps.Keys(r.Aliases)) {
		original := r.Aliases[alias]
		at, there := taken[original]
		_, shadows := taken[alias]
		switch {
		case !there:
			one.addProblem("aliases: it has no tool %q for alias %q%s", original, alias, didYouMean(original, names))
		case shadows:
			one.addProblem("aliases: %q is refused for %q, because another tool has that name", alias, original)
		default:
			rename(&tools[at], alias)
			taken[alias] = at
		}
	}
	return tools
}

func (one *namespace) addProblem(format string, args ...any) {
	one.problems = append(one.problems, fmt.Sprintf(format, args...))
}

func didYouMean(name string, known []string) string {
	if near := suggest.Names(name, known, 1); len(near) > 0 {
		return fmt.Sprintf("; did you mean %q?", near[0])
	}
	return ""
}

// rename gives a tool another name.
func rename(info *tool.Info, name string) {
	info.Original = originalOf(info)
	info.Name = name
}

// Variant applies what changed a listed tool to another definition of it, which one caller
// has. It is false when the transform hides that.
func (s *Source) Variant(ctx context.Context, listed *tool.Info, other tool.Info) (tool.Info, bool) {
	other.Ref, other.Original, other.Priority = listed.Ref, listed.Original, listed.Priority
	s.mu.Lock()
	transform := s.transform
	s.mu.Unlock()
	if transform == nil {
		return other, true
	}
	seen, err := transform(ctx, listed.Space, identified([]tool.Info{other}))
	if err != nil { // as with other lists; the transform logs it
		return other, true
	}
	for _, want := range seen {
		if want.Original == originalOf(&other) {
			reword(&other, want)
			return other, true
		}
	}
	return other, false
}

// Transform sees the tools of a namespace after its rule was applied, and returns those
// to list, with any name, title, description and priority. It identifies them by
// Original, which is never empty here. After an error the tools stay as they are; the
// transform logs it.
type Transform func(ctx context.Context, namespace string, tools []tool.Info) ([]tool.Info, error)

// applyTransform takes from a transform its choice of tools, and their names, texts and
// priorities. All else in a definition stays the upstream's.
func (one *namespace) applyTransform(tools, seen []tool.Info) []tool.Info {
	known := map[string]*tool.Info{}
	for i := range tools {
		known[originalOf(&tools[i])] = &tools[i]
	}
	owners := map[string]bool{}
	for i := range one.from {
		owners[one.from[i].Name] = true
	}
	var shown []tool.Info
	used := map[string]bool{}
	for _, want := range seen {
		was := known[want.Original]
		if was == nil {
			one.addProblem("on_mcp_tools: it has no tool %q", want.Original)
			continue
		}
		delete(known, want.Original)
		info := *was
		if want.Name != info.Name {
			if one.mayRename(info, want.Name, owners[want.Name] || used[want.Name]) {
				rename(&info, want.Name)
			}
		}
		if used[info.Name] {
			one.addProblem("on_mcp_tools: two tools would be called %q; %q is left out", info.Name, want.Original)
			continue
		}
		used[info.Name] = true
		reword(&info, want)
		shown = append(shown, info)
	}
	return shown
}

// mayRename tells whether a transform may give a tool that name.
func (one *namespace) mayRename(info tool.Info, name string, taken bool) bool {
	switch {
	case !validName().MatchString(name):
		one.addProblem("on_mcp_tools: %q is not a valid name for %q", name, originalOf(&info))
	case taken && name != originalOf(&info):
		one.addProblem("on_mcp_tools: %q is refused for %q, because another tool has that name", name, originalOf(&info))
	default:
		return true
	}
	return false
}

// reword sets title, description and priority, also in the raw definition.
func reword(info *tool.Info, want tool.Info) {
	info.Priority = want.Priority
	if want.Title != info.Title {
		info.Title = want.Title
		info.Raw = edited(info.Raw, "title", want.Title)
	}
	if want.Description != info.Description {
		info.Description = want.Description
		info.Raw = edited(info.Raw, "description", want.Description)
	}
}

func edited(raw []byte, key, text string) []byte {
	if raw == nil {
		return nil
	}
	return rawjson.SetText(raw, key, text)
}
