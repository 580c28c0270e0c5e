package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
)

// route maps the beginning of tool names to a namespace.
type route struct{ prefix, space string }

// routesOf are the routes of all exposures, the longest prefix first.
func routesOf(exposure map[string]Exposure) []route {
	var routes []route
	for space, e := range exposure {
		for _, prefix := range e.Prefixes {
			routes = append(routes, route{prefix, space})
		}
	}
	slices.SortFunc(routes, func(a, b route) int {
		return cmp.Or(cmp.Compare(len(b.prefix), len(a.prefix)), strings.Compare(a.prefix, b.prefix), strings.Compare(a.space, b.space))
	})
	return routes
}

// routeOf finds the route of a name without a namespace.
func (v *view) routeOf(name string) (route, bool) {
	at := slices.IndexFunc(v.routes, func(r route) bool { return strings.HasPrefix(name, r.prefix) })
	if at < 0 {
		return route{}, false
	}
	return v.routes[at], true
}

// showsBare tells whether a tool is exposed under its own name, because a prefix routes
// that name to it.
func (v *view) showsBare(info *tool.Info) bool {
	r, ok := v.routeOf(info.Name)
	return ok && r.space == info.Space && allowed(info.Name) == info.Name && len(info.Name) <= longestName
}

// noRoute is the error for a name that has a route but no tool, or no route; nil where
// there are no routes at all.
func (v *view) noRoute(name string) error {
	if len(v.routes) == 0 {
		return nil
	}
	if r, ok := v.routeOf(name); ok {
		f := fault.New(fault.ToolNotFound, "no tool %q: names with the prefix %s belong to %s", name, r.prefix, r.space)
		s := v.namespaces[r.space]
		if s == nil || len(s.tools) == 0 {
			return f.WithHint("the tools of %s are not known: look at its status", r.space)
		}
		d := missingTool{Tool: name, DidYouMean: similar(name, s.names(), mostSuggestions), Available: s.first()}
		return f.WithHint("%s%s: %s", didYouMeanPrefix(d.DidYouMean), s.heading(), listed(d.Available, len(s.tools))).WithDetails(d)
	}
	var prefixes []string
	for _, r := range v.routes {
		prefixes = append(prefixes, fmt.Sprintf("%s… (%s)", r.prefix, r.space))
	}
	slices.Sort(prefixes)
	return fault.New(fault.ToolNotFound, "no backend available for tool %q", name).
		WithHint("%snames of tools begin with %s", didYouMeanPrefix(similar(name, v.exposedNames(), mostSuggestions)), strings.Join(prefixes, ", ")).
		WithDetails(missingTool{Tool: name, DidYouMean: similar(name, v.exposedNames(), mostSuggestions)})
}

// didYouMeanPrefix is a question with suggestions that more text follows.
func didYouMeanPrefix(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("did you mean %s? ", strings.Join(names, " or "))
}

// exposedNames lists the exposed names.
func (v *view) exposedNames() []string {
	names := make([]string, 0, len(v.exposed.tools))
	for i := range v.exposed.tools {
		name := v.exposed.tools[i].Name
		if v.find(v.exposed.refs[name]) != nil { // a narrowed view does not have all of them
			names = append(names, name)
		}
	}
	return names
}
