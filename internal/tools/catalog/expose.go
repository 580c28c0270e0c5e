package catalog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

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
	pinned map[string]bool // names of favourites
	hash   string
}

// expose selects and renames tools: our own as they are, others by their exposure.
func (v *view) expose(exposure map[string]Exposure, pinned map[string]bool, names *names) exposed {
	x := exposed{refs: map[string]tool.Ref{}, pinned: map[string]bool{}}
	all := sha256.New()
	for i := range v.tools {
		info := &v.tools[i]
		name, bare := v.exposedName(info, names)
		favourite := len(pinned) > 0 && (pinned[name] || pinned[info.Ref.String()])
		if info.Space != "" && !bare && !favourite && !exposure[info.Space].includes(info) {
			continue
		}
		if favourite {
			x.pinned[name] = true
			all.Write([]byte("pinned"))
		}
		shown := v.find(info.Ref).show(name)
		all.Write(shown.sum[:])
		all.Write([]byte(name))
		x.refs[name] = info.Ref
		x.tools = append(x.tools, shown.info)
	}
	slices.SortFunc(x.tools, func(a, b tool.Info) int { return cmp.Compare(a.Name, b.Name) })
	x.hash = hex.EncodeToString(all.Sum(nil)[:16])
	return x
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
	v := x.catalog.refresh(ctx)
	shown := v.exposed
	who := principal.Of(ctx)
	hides := x.catalog.hidden(who)
	if v.isOpenTo(who) && hides == nil {
		return shown.tools, nil
	}
	var list []tool.Info
	for _, info := range shown.tools {
		if ref := shown.refs[info.Name]; x.catalog.granted(who, ref) && v.shows(ref, hides) {
			list = append(list, x.inOrg(who, v, ref, info))
		}
	}
	if org := who.ActingOrg(); len(v.ofOrg(org))+len(v.scriptsOf(org)) > 0 {
		slices.SortFunc(list, func(a, b tool.Info) int { return cmp.Compare(a.Name, b.Name) })
	}
	return list, nil
}

// inOrg is a tool under the name that it has for members of its organisation, unless that
// would be too long or another tool has it.
func (x Exposed) inOrg(who principal.Principal, v *view, ref tool.Ref, info tool.Info) tool.Info {
	own := shownTo(who, ref)
	plain := exposedAs(own.Space, own.Name)
	other, taken := v.exposed.refs[plain]
	if own == ref || len(plain) > x.catalog.names.limit || taken && other != own {
		return info
	}
	return renamed(info, plain)
}

// InputSchema is the schema of a tool's arguments, by its exposed name.
func (x Exposed) InputSchema(name string) (json.RawMessage, bool) {
	tools := x.catalog.view.Load().exposed.tools
	i, found := slices.BinarySearchFunc(tools, name, func(info tool.Info, name string) int { return cmp.Compare(info.Name, name) })
	if !found {
		return nil, false
	}
	return tools[i].Input, true
}

// Call runs a tool by its exposed name, or by any other spelling of its name: which tools
// are listed decides what a client sees, not what it may call.
func (x Exposed) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	ref, ok := x.catalog.view.Load().exposed.refs[call.Ref.Name]
	if !ok || isForeign(ctx, ref) {
		var err error
		if ref, err = x.unlisted(ctx, call.Ref.Name); err != nil {
			return tool.Result{}, err
		}
	}
	call.Ref = ref
	return x.catalog.Call(ctx, call)
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
	if ref, ok := v.exposed.refs[name]; ok && !isForeign(ctx, ref) {
		return ref, nil
	}
	visible := x.catalog.visible(ctx, v)
	if e := visible.resolve(name); e != nil {
		return e.info.Ref, nil
	}
	if x.catalog.WhyHidden(ctx, name) == nil {
		return tool.Ref{}, visible.unknownName(name)
	}
	ref, _ := parseName(name) // Catalog.Call refuses it with the reason
	return ref, nil
}

// Namespace returns the namespace of the tool with an exposed name; our own tools and
// published scripts have none.
func (x Exposed) Namespace(name string) string {
	v := x.catalog.view.Load()
	if ref, ok := v.exposed.refs[name]; ok {
		return ref.Space
	}
	space, _, _ := strings.Cut(name, "__")
	for _, names := range v.orgs {
		if of, ok := names[space]; ok {
			return of
		}
	}
	return ""
}

// Pinned tells whether an exposed name is that of a favourite.
func (x Exposed) Pinned(name string) bool { return x.catalog.view.Load().exposed.pinned[name] }

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
