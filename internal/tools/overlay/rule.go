package overlay

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
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

var validName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`) })

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
