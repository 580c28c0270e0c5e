package catalog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// Exposure says which tools of a namespace the hub exposes. The zero value exposes
// none.
type Exposure struct {
	All   bool
	Names []string // only these, by their names or their upstream's names; ignored with All
	// Prefixes route to this namespace: its tools whose names begin with one are
	// exposed too, under their own names. The longest matching prefix wins.
	Prefixes []string
}

func (e Exposure) equal(other Exposure) bool {
	return e.All == other.All && slices.Equal(e.Names, other.Names) && slices.Equal(e.Prefixes, other.Prefixes)
}

func (e Exposure) includes(info *tool.Info) bool {
	return e.All || slices.Contains(e.Names, info.Name) || info.Original != "" && slices.Contains(e.Names, info.Original)
}

// Expose sets which tools of a namespace the hub exposes. The namespace need not exist
// yet.
func (c *Catalog) Expose(namespace string, e Exposure) {
	var tell []func()
	c.mu.Lock()
	if !e.equal(c.exposure[namespace]) {
		c.exposure[namespace] = Exposure{All: e.All, Names: slices.Clone(e.Names), Prefixes: slices.Clone(e.Prefixes)}
		tell = c.republish()
	}
	c.mu.Unlock()
	for _, f := range tell {
		f()
	}
}

// Pin sets the favourites, by any of their names: the hub always exposes them.
func (c *Catalog) Pin(names []string) {
	c.mu.Lock()
	c.pinned = map[string]bool{}
	for _, name := range names {
		c.pinned[strings.TrimPrefix(name, "mcp.")] = true
	}
	tell := c.republish()
	c.mu.Unlock()
	for _, f := range tell {
		f()
	}
}

// republish makes a new view after the exposure has changed; mu is held.
func (c *Catalog) republish() (tell []func()) {
	old := c.view.Load()
	if old.names == nil { // nothing was read yet
		return nil
	}
	v := *old
	_, tell = c.publish(old, &v)
	return tell
}

// exposed is the part of a view that the hub exposes.
type exposed struct {
	tools  []tool.Info
	refs   map[string]tool.Ref
	pinned map[tool.Ref]bool // favourites
	orgs   map[string]orgNames
	hash   string
}

// orgNames are the exposed tools of an organisation under the names that its members see,
// where these are others.
type orgNames struct {
	refs  map[string]tool.Ref
	tools map[tool.Ref]tool.Info
}

// expose selects and renames tools: our own as they are, others by their exposure.
func (v *view) expose(exposure map[string]Exposure, pinned map[string]bool, names *names) exposed {
	x := exposed{refs: map[string]tool.Ref{}, pinned: map[tool.Ref]bool{}}
	all := sha256.New()
	for i := range v.tools {
		info := &v.tools[i]
		name, bare := v.exposedName(info, names)
		favourite := len(pinned) > 0 && (pinned[name] || pinned[info.Ref.String()])
		if info.Space != "" && !bare && !favourite && !exposure[info.Space].includes(info) {
			continue
		}
		if favourite {
			x.pinned[info.Ref] = true
			all.Write([]byte("pinned"))
		}
		shown := v.find(info.Ref).show(name)
		all.Write(shown.sum[:])
		all.Write([]byte(name))
		x.refs[name] = info.Ref
		x.tools = append(x.tools, shown.info)
	}
	slices.SortFunc(x.tools, func(a, b tool.Info) int { return cmp.Compare(a.Name, b.Name) })
	x.nameInOrgs(names.limit)
	x.hash = hex.EncodeToString(all.Sum(nil)[:16])
	return x
}

// nameInOrgs names the tools of organisations for their members, unless that name is too
// long or another tool has it.
func (x *exposed) nameInOrgs(longest int) {
	for i := range x.tools {
		info := &x.tools[i]
		ref := x.refs[info.Name]
		own, org := ofOrg(ref)
		plain := exposedAs(own.Space, own.Name)
		if org == "" || len(plain) > longest {
			continue
		}
		if x.orgs == nil {
			x.orgs = map[string]orgNames{}
		}
		if x.orgs[org].refs == nil {
			x.orgs[org] = orgNames{map[string]tool.Ref{}, map[tool.Ref]tool.Info{}}
		}
		other, taken := x.refs[plain]
		if _, twice := x.orgs[org].refs[plain]; twice || taken && other != own {
			continue
		}
		x.orgs[org].refs[plain], x.orgs[org].tools[ref] = ref, renamed(*info, plain)
	}
}

// ofOrg splits the name of an organisation's tool.
func ofOrg(ref tool.Ref) (own tool.Ref, org string) {
	if own = ref; ref.Space == "" {
		own.Name, org = principal.SplitNamespace(ref.Name)
	} else {
		own.Space, org = principal.SplitNamespace(ref.Space)
	}
	return own, org
}

// exposedName is the name under which a tool is exposed; bare tells that a prefix
// routes its own name to it.
func (v *view) exposedName(info *tool.Info, names *names) (name string, bare bool) {
	bare = v.showsBare(info)
	if _, taken := names.byName[info.Name]; bare && !taken {
		return info.Name, true
	}
	return names.byRef[info.Ref], bare
}

// exposedInfo is a tool as the hub exposes it.
type exposedInfo struct {
	name string
	info tool.Info
	sum  [sha256.Size]byte // of its definition
}

// show is the tool under its exposed name. The last one is cached, as the name seldom
// changes.
func (e *entry) show(name string) *exposedInfo {
	if known := e.exposed.Load(); known != nil && known.name == name {
		return known
	}
	s := &exposedInfo{name, renamed(e.info, name), digest(&e.info)}
	e.exposed.Store(s)
	return s
}

// renamed is info under its exposed name. Nothing else in the definition changes.
func renamed(info tool.Info, name string) tool.Info {
	if info.Raw != nil && info.Name != name {
		info.Raw = rawjson.SetText(info.Raw, "name", name)
	}
	info.Ref = tool.Ref{Name: name}
	return info
}

// Exposed is the catalog as the hub exposes it.
type Exposed struct{ catalog *Catalog }

// Exposed is the catalog as the hub shows it.
func (c *Catalog) Exposed() Exposed { return Exposed{c} }

// Tools lists the exposed tools, by name.
func (x Exposed) Tools(ctx context.Context) ([]tool.Info, error) {
	if err := x.catalog.ready(ctx); err != nil {
		return nil, err
	}
	v := x.catalog.refresh(ctx)
	shown := v.exposed
	who := principal.Of(ctx)
	hides, own := x.catalog.hidden(who), x.catalog.ownOf(ctx)
	allShown := v.models == nil || tool.ShowsApps(ctx)
	if v.isOpenTo(who) && hides == nil && own == nil && allShown {
		return shown.tools, nil
	}
	isListed := func(info *tool.Info, ref tool.Ref) bool {
		return (allShown || !info.App.Hidden) && x.catalog.granted(who, ref) && v.shows(ref, hides)
	}
	inOrg := shown.orgs[who.ActingOrg()].tools
	var list []tool.Info
	for _, info := range shown.tools {
		ref := shown.refs[info.Name]
		if !isListed(&info, ref) {
			continue
		}
		if named, ok := inOrg[ref]; ok {
			info = named
		}
		list = append(list, v.defined(info, ref, own))
	}
	if len(inOrg) > 0 {
		slices.SortFunc(list, func(a, b tool.Info) int { return cmp.Compare(a.Name, b.Name) })
	}
	return list, nil
}

// All lists all tools that the caller may see, by name, whether or not they are exposed.
func (x Exposed) All(ctx context.Context) ([]tool.Info, error) {
	visible, err := x.Visible(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]tool.Info, len(visible))
	x.each(ctx, visible, func(i int, name string, _ tool.Ref) { list[i] = renamed(visible[i], name) })
	slices.SortFunc(list, func(a, b tool.Info) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// Refs are the tools that the caller may see, by the names that All has for them.
func (x Exposed) Refs(ctx context.Context) (map[string]tool.Ref, error) {
	visible, err := x.Visible(ctx)
	refs := make(map[string]tool.Ref, len(visible))
	x.each(ctx, visible, func(_ int, name string, real tool.Ref) { refs[name] = real })
	return refs, err
}

// each calls f with the exposed name and the own name of every tool.
func (x Exposed) each(ctx context.Context, visible []tool.Info, f func(i int, name string, real tool.Ref)) {
	c := x.catalog
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, info := range visible {
		name, real := exposedAs(info.Space, info.Name), c.own(ctx, info.Ref)
		if real == info.Ref || len(name) > c.names.limit {
			name = c.names.byRef[real]
		}
		f(i, name, real)
	}
}

// Visible lists all tools that the caller may see, by their own names. A client that shows pages
// sees the tools for these, too.
func (x Exposed) Visible(ctx context.Context) ([]tool.Info, error) {
	if err := x.catalog.ready(ctx); err != nil {
		return nil, err
	}
	v := x.catalog.refresh(ctx)
	if tool.ShowsApps(ctx) {
		return x.catalog.visibleIn(ctx, v, v).tools, nil
	}
	return x.catalog.visible(ctx, v).tools, nil
}

// defined is an exposed tool as the caller has it.
func (v *view) defined(info tool.Info, ref tool.Ref, own definer) tool.Info {
	if own == nil {
		return info
	}
	if defined, _ := own(&v.find(ref).info); defined != nil {
		return renamed(*defined, info.Name)
	}
	return info
}

// refOf finds the tool that an exposed name stands for, as the caller's organisation has it.
func (x Exposed) refOf(ctx context.Context, v *view, name string) (tool.Ref, bool) {
	if len(v.exposed.orgs) > 0 {
		if ref, ok := v.exposed.orgs[principal.Of(ctx).ActingOrg()].refs[name]; ok {
			return ref, true
		}
	}
	ref, ok := v.exposed.refs[name]
	if !ok || isForeign(ctx, ref) {
		return tool.Ref{}, false
	}
	return ref, true
}

// InputSchema is the schema of a tool's arguments, by its exposed name.
func (x Exposed) InputSchema(ctx context.Context, name string) (json.RawMessage, bool) {
	v := x.catalog.view.Load()
	ref, ok := x.refOf(ctx, v, name)
	if !ok {
		return nil, false
	}
	e := x.catalog.callersEntry(ctx, v.find(x.catalog.own(ctx, ref)))
	if e == nil {
		return nil, false
	}
	return e.info.Input, true
}

// Call runs a tool by its exposed name, or by any other spelling of its name: which tools
// are listed decides what a client sees, not what it may call.
func (x Exposed) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	if err := x.catalog.ready(ctx); err != nil {
		return tool.Result{}, err
	}
	ref, ok := x.refOf(ctx, x.catalog.view.Load(), call.Ref.Name)
	if !ok {
		var err error
		if ref, err = x.unlisted(ctx, call.Ref.Name); err != nil {
			return tool.Result{}, err
		}
	}
	call.Ref = ref
	return x.catalog.Call(withDirect(ctx, ref), call)
}

type directKey struct{}

// withDirect returns ctx for the call of a tool by a client, and not by what another tool does:
// models do not see all tools that pages of MCP Apps call.
func withDirect(ctx context.Context, ref tool.Ref) context.Context {
	return context.WithValue(ctx, directKey{}, ref)
}

func isDirect(ctx context.Context, ref tool.Ref) bool {
	if approved, ok := tool.Approved(ctx); ok && shown(ctx, ref) == approved {
		return true
	}
	direct, ok := ctx.Value(directKey{}).(tool.Ref)
	return ok && direct == ref
}

// isForeign tells whether a tool is of an organisation that the caller is not in. Its name
// is as unknown to them as one that nobody has.
func isForeign(ctx context.Context, ref tool.Ref) bool {
	who := principal.Of(ctx)
	return who.IsForeign(ref.Space) || ref.Space == "" && who.IsForeign(ref.Name)
}

// unlisted finds the tool of a name that is not listed.
func (x Exposed) unlisted(ctx context.Context, name string) (tool.Ref, error) {
	v := x.catalog.refresh(ctx)
	if ref, ok := x.refOf(ctx, v, name); ok {
		return ref, nil
	}
	if ref, ok := v.names[name]; ok && v.models != nil && x.catalog.canSee(ctx, ref) && v.find(ref).info.App.Hidden {
		return ref, nil
	}
	visible := x.catalog.visible(ctx, v)
	if e := visible.resolve(name); e != nil {
		return e.info.Ref, nil
	}
	if x.catalog.WhyHidden(ctx, name) == nil {
		if ref := visible.parseUnknown(name); visible.isUnlisted(ref.Space) {
			return ref, nil // the owner may be starting: it waits, and says what is wrong
		}
		return tool.Ref{}, x.catalog.unknownName(visible, name)
	}
	ref, _ := parseName(name) // Catalog.Call refuses it with the reason
	return ref, nil
}

// Namespace returns the namespace of the tool with an exposed name; our own tools and
// published scripts have none.
func (x Exposed) Namespace(ctx context.Context, name string) string {
	ref, _ := x.refOf(ctx, x.catalog.view.Load(), name)
	return ref.Space
}

// Pinned tells whether an exposed name is that of a favourite.
func (x Exposed) Pinned(ctx context.Context, name string) bool {
	v := x.catalog.view.Load()
	ref, ok := x.refOf(ctx, v, name)
	return ok && v.exposed.pinned[x.catalog.own(ctx, ref)]
}

// Hash changes exactly when the exposed definitions or their names do.
func (x Exposed) Hash(ctx context.Context) string { return x.catalog.refresh(ctx).exposed.hash }

// Watch calls changed whenever Hash changes, until stop is called. changed is called
// without locks, and must not block.
func (x Exposed) Watch(changed func()) (stop func()) {
	c := x.catalog
	key := &changed
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchers[key] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watchers, key)
	}
}

// Changes signals on a channel when the list changes, until stop is called.
func (x Exposed) Changes() (changed <-chan struct{}, stop func()) {
	flag := make(chan struct{}, 1)
	return flag, x.Watch(func() {
		select {
		case flag <- struct{}{}:
		default:
		}
	})
}

var _ tool.Source = Exposed{}

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

// ExposureProblems lists the names in the exposure of a namespace that no tool has,
// with suggestions. While the tools are not known there are no problems.
func (c *Catalog) ExposureProblems(ctx context.Context, namespace string) []string {
	v := c.refresh(ctx)
	c.mu.Lock()
	exposure := c.exposure[namespace]
	c.mu.Unlock()
	s := v.namespaces[namespace]
	if s == nil || len(s.tools) == 0 || exposure.All {
		return nil
	}
	var problems []string
	for _, name := range exposure.Names {
		if s.find(name) == nil {
			problems = append(problems, fmt.Sprintf("expose: it has no tool %q%s", name, didYouMean(similar(name, s.names(), mostSuggestions))))
		}
	}
	return problems
}

// didYouMean is a question with suggestions that follows other text.
func didYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", strings.Join(names, " or "))
}
