package catalog

import (
	"context"
	"slices"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// visible is the part of a view that the caller may see: what its scope allows (without
// a scope, all but private namespaces), and of that what its principal may see.
func (c *Catalog) visible(ctx context.Context, whole *view) *view {
	v := c.scoped(ctx, whole)
	who := principal.Of(ctx)
	if hides := c.hidden(who); !whole.isOpenTo(who) || hides != nil {
		all := v
		v = v.narrowed(func(ref tool.Ref) bool { return c.granted(who, ref) && all.shows(ref, hides) })
	}
	if own := c.ownOf(ctx); own != nil {
		v = v.ofCaller(own)
	}
	if names, scripts := whole.callerNames(ctx), whole.scriptsOf(who.ActingOrg()); len(names)+len(scripts) > 0 {
		return v.named(names, scripts)
	}
	return v
}

// isOpenTo tells whether a principal may see all tools. In a chat for somebody, an
// administrator sees nothing of other organisations.
func (v *view) isOpenTo(who principal.Principal) bool {
	return (who.Admin() || who.IsGuest()) && !who.Restricted() && (who.Person == "" || len(v.orgs)+len(v.scripts) == 0)
}

// hidden returns which tools are not listed for a principal; nil: none.
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

// Exists tells whether a namespace has a tool that the caller can call, or that is
// refused with a reason.
func (c *Catalog) Exists(ctx context.Context, namespace string) bool {
	namespace = c.own(ctx, tool.Ref{Space: namespace}).Space
	s := c.listed(ctx, namespace).namespaces[namespace]
	return s != nil && slices.ContainsFunc(s.tools, func(info tool.Info) bool { return c.canSee(ctx, info.Ref) })
}

// ShowsAll tells that the policy hides nothing from a principal.
func (c *Catalog) ShowsAll(who principal.Principal) bool { return c.hidden(who) == nil }

// Shows tells whether a tool is listed for the caller. One that is not listed may
// exist: a call of it is refused with the reason.
func (c *Catalog) Shows(ctx context.Context, ref tool.Ref) bool {
	ref = c.own(ctx, ref)
	return c.canSee(ctx, ref) && c.view.Load().shows(ref, c.hidden(principal.Of(ctx)))
}

// granted tells whether a tool exists for a principal. Private namespaces are left to
// the scope.
func (c *Catalog) granted(who principal.Principal, ref tool.Ref) bool {
	if c.reserved != nil && !who.Admin() && c.reserved(who, ref) {
		return false
	}
	if c.view.Load().isReplaced(who.ActingOrg(), ref) {
		return false // their organisation has another of this name
	}
	return c.private != nil && c.private(ref.Space) || who.CanSee(ref.Space, ref.Name)
}

// scoped is the part of a view that the caller's scope allows.
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

// canSee tells whether one tool exists for the caller. ref is not in the names of its scope.
func (c *Catalog) canSee(ctx context.Context, ref tool.Ref) bool {
	if !c.granted(principal.Of(ctx), ref) {
		return false
	}
	if scope := tool.ScopeOf(ctx); scope != nil {
		return scope.Allows(ref)
	}
	return c.private == nil || !c.private(ref.Space)
}

// narrowed is the view with the allowed tools only.
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

// narrowed is the namespace with the allowed tools only, or nil when it has none. A
// namespace of which all is allowed is returned itself.
func (s *namespaceTools) narrowed(allows func(tool.Ref) bool) *namespaceTools {
	var allowed []tool.Info
	for i := range s.tools {
		if allows(s.tools[i].Ref) {
			allowed = append(allowed, s.tools[i])
		}
	}
	switch {
	case len(allowed) == len(s.tools) && (len(allowed) > 0 || allows(tool.Ref{Space: s.space})):
		return s
	case len(allowed) == 0:
		return nil
	}
	n := &namespaceTools{space: s.space, tools: allowed, entries: make(map[string]*entry, len(allowed)), owner: s.owner, state: s.state, search: &lazyIndex{}}
	for _, info := range allowed {
		n.entries[info.Name] = s.entries[info.Name]
	}
	return n
}
