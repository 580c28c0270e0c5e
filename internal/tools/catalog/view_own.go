package catalog

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/luanette/luanette/internal/core/tool"
)

// A source may have other tools for one caller than for another: the catalog lists what
// anybody has, and each caller is shown only what they have, as it is defined for them.

// definer returns how a listed tool is for one caller: false if it is not theirs, and
// another definition if they have one.
type definer = func(*tool.Info) (own *tool.Info, has bool)

// ownOf is that of the caller; nil: everything is as listed.
func (c *Catalog) ownOf(ctx context.Context) definer {
	if c.owns == nil {
		return nil
	}
	return c.owns(ctx)
}

// callersEntry is a tool as the caller has it. For one that they do not have nothing is
// known: its source decides.
func (c *Catalog) callersEntry(ctx context.Context, e *entry) *entry {
	own := c.ownOf(ctx)
	if own == nil || e == nil {
		return e
	}
	switch info, has := own(&e.info); {
	case !has:
		return &entry{info: tool.Info{Ref: e.info.Ref, Original: e.info.Original}, source: e.source, state: e.state, hidden: e.hidden}
	case info != nil:
		return e.as(info)
	default:
		return e
	}
}

// isListedFor tells whether the caller has a tool, if it is one that not everybody has.
func (c *Catalog) isListedFor(ctx context.Context, e *entry) bool {
	own := c.ownOf(ctx)
	if own == nil {
		return true
	}
	_, has := own(&e.info)
	return has
}

// variants are the other definitions of a tool.
type variants struct {
	mu sync.Mutex
	of map[*tool.Info]*entry
}

// maxVariants bounds how many definitions of one tool are kept compiled.
const maxVariants = 1000

// as is the tool with another definition.
func (e *entry) as(info *tool.Info) *entry {
	e.variants.mu.Lock()
	defer e.variants.mu.Unlock()
	known := e.variants.of[info]
	if known == nil {
		if len(e.variants.of) >= maxVariants || e.variants.of == nil {
			e.variants.of = map[*tool.Info]*entry{}
		}
		known = &entry{info: *info, source: e.source, state: e.state, hidden: e.hidden}
		e.variants.of[info] = known
	}
	return known
}

// ofCaller is the view with the caller's definitions.
func (v *view) ofCaller(own definer) *view {
	changed := map[string]*namespaceTools{}
	for _, space := range v.sorted {
		if s := v.namespaces[space].ofCaller(own); s != v.namespaces[space] {
			changed[space] = s
		}
	}
	if len(changed) == 0 {
		return v
	}
	n := *v
	n.namespaces, n.tools = maps.Clone(v.namespaces), nil
	maps.Copy(n.namespaces, changed)
	for _, space := range n.sorted {
		n.tools = append(n.tools, n.namespaces[space].tools...)
	}
	return &n
}

// ofCaller is the namespace with the caller's definitions, or itself if there are none.
func (s *namespaceTools) ofCaller(own definer) *namespaceTools {
	n := s
	for i := range s.tools {
		info, _ := own(&s.tools[i])
		if info == nil {
			continue
		}
		if n == s {
			clone := *s
			n = &clone
			n.tools, n.entries, n.byOriginal, n.search = slices.Clone(s.tools), maps.Clone(s.entries), maps.Clone(s.byOriginal), &lazyIndex{}
		}
		e := s.entries[info.Name].as(info)
		n.tools[i], n.entries[info.Name] = *info, e
		if info.Original != "" && n.byOriginal != nil {
			n.byOriginal[info.Original] = e
		}
	}
	return n
}
