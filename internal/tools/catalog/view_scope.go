package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// visible is the part of a view that the caller may see: what models are shown, of that what
// its scope allows (without a scope, all but private namespaces), and what its principal may see.
func (c *Catalog) visible(ctx context.Context, whole *view) *view {
	return c.visibleIn(ctx, whole, whole.forModels())
}

// visibleIn is the part of a view that the caller may see, of some of its tools.
func (c *Catalog) visibleIn(ctx context.Context, whole, some *view) *view {
	v := c.scoped(ctx, some)
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
	if c.options.Hides == nil {
		return nil
	}
	return c.options.Hides(who)
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

// Lists tells whether something of a namespace is listed for the caller that is no tool.
func (c *Catalog) Lists(ctx context.Context, info *tool.Info) bool {
	hides := c.hidden(principal.Of(ctx))
	return c.canSee(ctx, info.Ref) && (hides == nil || !hides(info))
}

// granted tells whether a tool exists for a principal. Private namespaces are left to
// the scope.
func (c *Catalog) granted(who principal.Principal, ref tool.Ref) bool {
	if who.Set != "" && (c.options.InSet == nil || !c.options.InSet(who, ref)) {
		return false
	}
	if c.options.Reserved != nil && !who.Admin() && c.options.Reserved(who, ref) {
		return false
	}
	if c.view.Load().isReplaced(who.ActingOrg(), ref) {
		return false // their organisation has another of this name
	}
	return c.options.Private != nil && c.options.Private(ref.Space) || who.CanSee(ref.Space, ref.Name)
}

// scoped is the part of a view that the caller's scope allows.
func (c *Catalog) scoped(ctx context.Context, v *view) *view {
	if scope := tool.ScopeOf(ctx); scope != nil {
		return v.narrowed(scope.Allows)
	}
	if c.options.Private == nil {
		return v
	}
	for _, space := range v.sorted {
		if c.options.Private(space) {
			return v.narrowed(func(ref tool.Ref) bool { return !c.options.Private(ref.Space) })
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
	return c.options.Private == nil || !c.options.Private(ref.Space)
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

// A source may have other tools for one caller than for another: the catalog lists what
// anybody has, and each caller is shown only what they have, as it is defined for them.

// definer returns how a listed tool is for one caller: false if it is not theirs, and
// another definition if they have one.
type definer = func(*tool.Info) (own *tool.Info, has bool)

// ownOf is that of the caller; nil: everything is as listed.
func (c *Catalog) ownOf(ctx context.Context) definer {
	if c.options.Own == nil {
		return nil
	}
	return c.options.Own(ctx)
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

// A scope may have its own names for namespaces: two people may both have a server
// "wiki". So may organisations: a member's "github" is "github@acme", and a member's script
// "report" may be "report@acme". The methods of the catalog take and return the caller's
// names; sources, steps and events know the namespaces and scripts by their own.

// own returns the tool that a caller's name stands for.
func (c *Catalog) own(ctx context.Context, ref tool.Ref) tool.Ref {
	if scope := tool.ScopeOf(ctx); scope != nil {
		if space, named := scope.Names[ref.Space]; named {
			ref.Space = space
			return ref
		}
	}
	v, org := c.view.Load(), principal.Of(ctx).ActingOrg()
	if space, named := v.ofOrg(org)[ref.Space]; named {
		ref.Space = space
	} else if name, named := v.scriptsOf(org)[ref.Name]; named && ref.Space == "" {
		ref.Name = name
	}
	return ref
}

// Real returns the tool that a caller's name stands for, by its own name.
func (c *Catalog) Real(ctx context.Context, ref tool.Ref) tool.Ref { return c.own(ctx, ref) }

// shown returns the caller's name of a tool.
func shown(ctx context.Context, ref tool.Ref) tool.Ref {
	if scope := tool.ScopeOf(ctx); scope != nil {
		for name, space := range scope.Names {
			if space == ref.Space {
				return tool.Ref{Space: name, Name: ref.Name}
			}
		}
	}
	return shownTo(principal.Of(ctx), ref)
}

// shownTo returns the name of a tool for a member of its organisation.
func shownTo(who principal.Principal, ref tool.Ref) tool.Ref {
	if ref.Space == "" {
		return tool.Ref{Name: who.NameOf(ref.Name)}
	}
	return tool.Ref{Space: who.NameOf(ref.Space), Name: ref.Name}
}

// ofOrg returns the names that an organisation has for its own namespaces.
func (v *view) ofOrg(org string) map[string]string {
	if org == "" {
		return nil
	}
	return v.orgs[org]
}

// scriptsOf returns the names that an organisation has for its own scripts.
func (v *view) scriptsOf(org string) map[string]string {
	if org == "" {
		return nil
	}
	return v.scripts[org]
}

// isReplaced tells whether an organisation has another namespace or script of this name.
func (v *view) isReplaced(org string, ref tool.Ref) bool {
	_, space := v.ofOrg(org)[ref.Space]
	_, script := v.scriptsOf(org)[ref.Name]
	return space || script && ref.Space == ""
}

// orgsOf returns the names that each organisation has for its own namespaces or scripts.
func orgsOf(spaces []string) map[string]map[string]string {
	var all map[string]map[string]string
	for _, space := range spaces {
		name, org := principal.SplitNamespace(space)
		if org == "" {
			continue
		}
		if all == nil {
			all = map[string]map[string]string{}
		}
		if all[org] == nil {
			all[org] = map[string]string{}
		}
		all[org][name] = space
	}
	return all
}

// callerNames are the caller's names of namespaces, those of their scope before those of their
// organisation.
func (v *view) callerNames(ctx context.Context) map[string]string {
	ofOrg, scope := v.ofOrg(principal.Of(ctx).ActingOrg()), tool.ScopeOf(ctx)
	switch {
	case scope == nil || len(scope.Names) == 0:
		return ofOrg
	case len(ofOrg) == 0:
		return scope.Names
	}
	all := maps.Clone(ofOrg)
	maps.Copy(all, scope.Names)
	return all
}

// missing is the error for a tool that does not exist for the caller.
func (c *Catalog) missing(ctx context.Context, v *view, ref tool.Ref) error {
	return c.missingIn(c.visible(ctx, v), shown(ctx, ref))
}

// named is the view with the caller's names of namespaces and scripts.
func (v *view) named(names, scripts map[string]string) *view {
	n := &view{namespaces: map[string]*namespaceTools{}, names: v.names, exposed: v.exposed, aliases: map[string]tool.Ref{}}
	called, calledScript := inverted(names), inverted(scripts)
	for _, space := range v.sorted {
		s := v.namespaces[space]
		if name, renamed := called[space]; renamed {
			s = s.named(name, nil, n.aliases)
		} else if space == "" && len(scripts) > 0 {
			s = s.named("", calledScript, n.aliases)
		}
		n.namespaces[s.space] = s
		n.sorted = append(n.sorted, s.space)
		n.tools = append(n.tools, s.tools...)
	}
	return n
}

func inverted(names map[string]string) map[string]string {
	by := make(map[string]string, len(names))
	for name, real := range names {
		by[real] = name
	}
	return by
}

// named is the namespace under another name, with other names of some tools. Their spellings
// are added to aliases. It is searched by the same index.
func (s *namespaceTools) named(space string, called map[string]string, aliases map[string]tool.Ref) *namespaceTools {
	n := &namespaceTools{space: space, owner: s.owner, state: s.state, origin: s}
	n.reserve(len(s.tools))
	for _, info := range s.tools {
		source := s.entries[info.Name].source
		info.Space, info.Name = space, cmp.Or(called[info.Name], info.Name)
		n.put(info, source)
		for _, name := range []string{info.Name, info.Original} {
			if name != "" {
				aliases[tool.Ref{Space: space, Name: name}.String()] = info.Ref
				aliases[exposedAs(info.Ref.Space, name)] = info.Ref
			}
		}
	}
	for _, e := range n.entries {
		e.state = n.state
	}
	return n
}

// inNames returns an error of a call with the caller's names of namespaces in it.
func (c *Catalog) inNames(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	v := c.view.Load()
	names, scripts := v.callerNames(ctx), v.scriptsOf(principal.Of(ctx).ActingOrg())
	if len(names)+len(scripts) == 0 {
		return err
	}
	var f *fault.Error
	if !errors.As(err, &f) {
		f = fault.From(err)
	}
	texts := [3]string{err.Error(), fault.HintOf(err), string(f.Details)}
	was := texts
	for _, called := range []map[string]string{names, scripts} {
		for name, real := range called {
			for i := range texts {
				texts[i] = strings.ReplaceAll(texts[i], real, name)
			}
		}
	}
	if texts == was {
		return err
	}
	return &fault.Error{Code: f.Code, Hint: texts[1], Details: json.RawMessage(texts[2]), Err: renamedError{texts[0], err}}
}

// renamedError is an error with another text.
type renamedError struct {
	text string
	err  error
}

func (r renamedError) Error() string { return r.text }
func (r renamedError) Unwrap() error { return r.err }
