package catalog

import (
	"context"
	"slices"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// visible is what the caller sees of a picture: what its scope allows, and without a
// scope everything but namespaces that belong to somebody; of that, what who asks
// may see.
func (c *Catalog) visible(ctx context.Context, v *view) *view {
	v = c.scoped(ctx, v)
	who := principal.Of(ctx)
	hides := c.hidden(who)
	if who.Admin() && !who.Restricted() && hides == nil {
		return v
	}
	return v.narrowed(func(ref tool.Ref) bool { return c.granted(who, ref) && v.shows(ref, hides) })
}

// hidden tells which tools there is no use in showing to who asks; nil: none.
func (c *Catalog) hidden(who principal.Principal) func(*tool.Info) bool {
	if c.hides == nil {
		return nil
	}
	return c.hides(who)
}

func (v *view) shows(ref tool.Ref, hides func(*tool.Info) bool) bool {
	if hides == nil {
		return true
	}
	e := v.find(ref)
	return e == nil || !hides(&e.info)
}

// Exists tells whether a namespace has any tool that who asks can call, or be
// refused with the reason.
func (c *Catalog) Exists(ctx context.Context, namespace string) bool {
	s := c.refresh(ctx).namespaces[namespace]
	return s != nil && slices.ContainsFunc(s.tools, func(info tool.Info) bool { return c.canSee(ctx, info.Ref) })
}

// ShowsAll tells that nothing is kept from somebody but what it does not see anyway.
func (c *Catalog) ShowsAll(who principal.Principal) bool { return c.hidden(who) == nil }

// Shows tells whether a tool is among those that who asks is shown. One that is not
// may exist all the same: a call of it is refused with the reason.
func (c *Catalog) Shows(ctx context.Context, ref tool.Ref) bool {
	return c.canSee(ctx, ref) && c.view.Load().shows(ref, c.hidden(principal.Of(ctx)))
}

// granted tells whether a tool exists for who asks. What belongs to somebody is
// visible only within a scope that names it, which knows better.
func (c *Catalog) granted(who principal.Principal, ref tool.Ref) bool {
	if c.reserved != nil && !who.Admin() && c.reserved(ref) {
		return false
	}
	return c.private != nil && c.private(ref.Space) || who.CanSee(ref.Space, ref.Name)
}

// scoped is what the caller's scope allows of a picture.
func (c *Catalog) scoped(ctx context.Context, v *view) *view {
	if scope := tool.ScopeOf(ctx); scope != nil {
		return v.narrowed(scope.Allows)
	}
	if c.private == nil {
		return v
	}
	for _, space := range v.sorted {
		if c.private(space) {
			return v.narrowed(func(ref tool.Ref) bool { return !c.private(ref.Space) })
		}
	}
	return v
}

// canSee tells whether one tool exists for the caller.
func (c *Catalog) canSee(ctx context.Context, ref tool.Ref) bool {
	if !c.granted(principal.Of(ctx), ref) {
		return false
	}
	if scope := tool.ScopeOf(ctx); scope != nil {
		return scope.Allows(ref)
	}
	return c.private == nil || !c.private(ref.Space)
}

// narrowed is a picture with the allowed tools only. Shelves of which all is
// allowed are taken as they are.
func (v *view) narrowed(allows func(tool.Ref) bool) *view {
	n := &view{namespaces: map[string]*namespaceTools{}, names: v.names, exposed: v.exposed}
	for _, space := range v.sorted {
		s := v.namespaces[space].narrowed(allows)
		if s == nil {
			continue
		}
		n.namespaces[space] = s
		n.sorted = append(n.sorted, space)
	}
	for i := range v.tools {
		if allows(v.tools[i].Ref) {
			n.tools = append(n.tools, v.tools[i])
		}
	}
	return n
}

// narrowed is the shelf with the allowed tools only, or nil when nothing is.
func (s *namespaceTools) narrowed(allows func(tool.Ref) bool) *namespaceTools {
	var kept []tool.Info
	for i := range s.tools {
		if allows(s.tools[i].Ref) {
			kept = append(kept, s.tools[i])
		}
	}
	switch {
	case len(kept) == len(s.tools) && (len(kept) > 0 || allows(tool.Ref{Space: s.space})):
		return s
	case len(kept) == 0:
		return nil
	}
	n := &namespaceTools{space: s.space, tools: kept, entries: make(map[string]*entry, len(kept)), owner: s.owner, state: s.state, search: &lazyIndex{}}
	for _, info := range kept {
		n.entries[info.Name] = s.entries[info.Name]
	}
	return n
}
