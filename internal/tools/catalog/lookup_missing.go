package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/search"
)

const (
	mostSuggestions = 3
	mostListed      = 30 // names in a list of available tools

	leastSuggested = 0.6 // of the score of the best tool found
)

// Resolve finds a tool by any spelling of its name: "tool" for our own, "space.tool",
// the exposed "space__tool", or "mcp.space.tool" as in scripts. The error is a
// tool_not_found with suggestions.
func (c *Catalog) Resolve(ctx context.Context, name string) (tool.Info, error) {
	v := c.view.Load()
	e := v.resolve(name)
	if e == nil || e.info.App.Hidden || !c.canSee(ctx, e.info.Ref) || shown(ctx, e.info.Ref) != e.info.Ref || c.ownOf(ctx) != nil {
		v = c.visible(ctx, c.namedView(ctx, name))
		e = v.resolve(name)
	}
	if e == nil {
		if err := c.WhyHidden(ctx, name); err != nil {
			return tool.Info{}, err
		}
		ref := v.parseUnknown(name)
		if err := v.noRoute(name); err != nil && ref.Space == "" {
			return tool.Info{}, err
		}
		return tool.Info{}, c.missingIn(v, ref)
	}
	return e.info, nil
}

// namedView is the current view, in which the namespace of a tool's name has listed its
// tools if that helps to find it.
func (c *Catalog) namedView(ctx context.Context, name string) *view {
	v := c.refresh(ctx)
	if v.resolve(name) != nil {
		return v
	}
	if space := c.own(ctx, v.parseUnknown(name)).Space; c.canLoad(v, space) {
		return c.loaded(ctx, space)
	}
	return v
}

func (v *view) resolve(name string) *entry {
	for _, spelling := range []string{name, strings.TrimPrefix(name, "mcp.")} {
		ref, ok := v.aliases[spelling]
		if !ok {
			ref, ok = v.names[spelling]
		}
		if ok {
			return v.find(ref)
		}
	}
	if r, ok := v.routeOf(name); ok {
		return v.find(tool.Ref{Space: r.space, Name: name})
	}
	return v.spelled(v.parseUnknown(name))
}

// spelled returns the only tool of a namespace that is written so as an identifier: get-sum
// for get_sum.
func (v *view) spelled(ref tool.Ref) *entry {
	var found *entry
	if s := v.namespaces[ref.Space]; s != nil && ref.Space != "" {
		for i := range s.tools {
			if tool.Identifier(s.tools[i].Name) != ref.Name {
				continue
			}
			if found != nil {
				return nil
			}
			found = v.find(s.tools[i].Ref)
		}
	}
	return found
}

// parseUnknown reads an unknown name for an error message: the text before a separator
// is a namespace if there is one of that name.
func (v *view) parseUnknown(name string) tool.Ref {
	name = strings.TrimPrefix(name, "mcp.")
	for _, separator := range []string{".", "__", "/", ":"} {
		space, rest, found := strings.Cut(name, separator)
		if found && (separator == "." || v.namespaces[space] != nil) {
			return tool.Ref{Space: space, Name: rest}
		}
	}
	return tool.Ref{Name: name}
}

// missingTool is the data of a tool_not_found error.
type missingTool struct {
	Tool       string   `json:"tool"`
	DidYouMean []string `json:"did_you_mean,omitempty"`
	Available  []string `json:"available,omitempty"`
	Namespaces []string `json:"namespaces,omitempty"`
}

// missingIn is the error for a tool that a caller's view does not have, with suggestions and
// the available tools.
func (c *Catalog) missingIn(v *view, ref tool.Ref) error {
	d := missingTool{Tool: ref.String(), DidYouMean: c.suggest(v, ref)}
	var hint strings.Builder
	if len(d.DidYouMean) > 0 {
		fmt.Fprintf(&hint, "did you mean %s? ", strings.Join(d.DidYouMean, " or "))
	}
	msg := fmt.Sprintf("no tool %q", ref)
	if s := v.namespaces[ref.Space]; s != nil {
		d.Available = s.first()
		fmt.Fprintf(&hint, "%s: %s", s.heading(), listed(d.Available, len(s.tools)))
	} else {
		msg += fmt.Sprintf(": there is no namespace %q", ref.Space)
		for _, name := range v.sorted {
			if name != "" {
				d.Namespaces = append(d.Namespaces, name)
			}
		}
		shown := d.Namespaces[:min(len(d.Namespaces), mostListed)]
		fmt.Fprintf(&hint, "namespaces: %s", listed(shown, len(d.Namespaces)))
	}
	return fault.New(fault.ToolNotFound, "%s", msg).WithHint("%s", hint.String()).WithDetails(d)
}

// suggest finds the tools that ref may mean: those of its namespace with a similar name, and
// those with its name elsewhere; or else what a search for its words finds, in its namespace if
// there is one.
func (c *Catalog) suggest(v *view, ref tool.Ref) []string {
	var found []string
	for _, name := range similar(ref.Name, v.namespaces[ref.Space].names(), mostSuggestions) {
		found = append(found, tool.Ref{Space: ref.Space, Name: name}.String())
	}
	for _, space := range v.sorted {
		if here := v.namespaces[space].find(ref.Name) != nil; here && len(found) < mostSuggestions {
			found = append(found, tool.Ref{Space: space, Name: ref.Name}.String())
		}
	}
	if len(found) > 0 {
		return found
	}
	q := Query{Namespace: ref.Space}
	if v.namespaces[ref.Space] == nil {
		q.Namespace = ""
	}
	near := search.Run(search.Query{Texts: []string{ref.Name}, Limit: mostSuggestions}, c.parts(v, &q))
	if near.Weak {
		return nil
	}
	for i := range near.Hits {
		if near.Hits[i].Score >= leastSuggested*near.Hits[0].Score {
			found = append(found, near.Hits[i].Ref.String())
		}
	}
	return found
}

// unknownName is the error for a name that a client called and no tool of its view has.
func (c *Catalog) unknownName(v *view, name string) error {
	ref := v.parseUnknown(name)
	if v.namespaces[ref.Space] != nil && ref.Space != "" {
		return c.missingIn(v, ref)
	}
	if _, known := v.names[name]; !known {
		if err := v.noRoute(name); err != nil {
			return err
		}
	}
	shown := v.exposedNames()
	d := missingTool{
		Tool:       name,
		DidYouMean: similar(name, shown, mostSuggestions),
		Available:  shown[:min(len(shown), mostListed)],
	}
	if len(d.DidYouMean) == 0 {
		d.DidYouMean = c.suggest(v, ref)
	}
	hint := "available: " + listed(d.Available, len(shown))
	if len(d.DidYouMean) > 0 {
		hint = fmt.Sprintf("did you mean %s? %s", strings.Join(d.DidYouMean, " or "), hint)
	}
	return fault.New(fault.ToolNotFound, "no tool %q", name).WithHint("%s", hint).WithDetails(d)
}

// similar finds names similar to name. Very long names are not compared: the time grows
// with the square of the length.
func similar(name string, known []string, limit int) []string {
	const longest = 200
	if len(name) > longest {
		return nil
	}
	if slices.ContainsFunc(known, func(k string) bool { return len(k) > longest }) {
		known = slices.DeleteFunc(slices.Clone(known), func(k string) bool { return len(k) > longest })
	}
	return suggest.Names(name, known, limit)
}

func (s *namespaceTools) names() []string {
	if s == nil {
		return nil
	}
	names := make([]string, len(s.tools))
	for i := range s.tools {
		names[i] = s.tools[i].Name
	}
	return names
}

// first is the beginning of the list of names.
func (s *namespaceTools) first() []string {
	names := s.names()
	return names[:min(len(names), mostListed)]
}

func (s *namespaceTools) heading() string {
	if s.space == "" {
		return "available"
	}
	return "available in " + s.space
}

// listed joins names, and tells how many more there are.
func listed(shown []string, total int) string {
	switch {
	case total == 0:
		return "none"
	case total > len(shown):
		return fmt.Sprintf("%s and %d more", strings.Join(shown, ", "), total-len(shown))
	default:
		return strings.Join(shown, ", ")
	}
}
