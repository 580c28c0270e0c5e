package catalog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/search"
)

// Namespaced is a source that knows its namespaces before it knows their tools.
type Namespaced interface {
	Namespaces() []string
}

// member is a source and what it last listed.
type member struct {
	source    tool.Source
	ticket    uint64 // number of the reading that made listing
	listing   listing
	lastError string // of the last listing, so that it is logged once
}

// listing is what a source listed when it was read.
type listing struct {
	tools  []tool.Info
	spaces []string
	err    error
}

func read(ctx context.Context, s tool.Source) listing {
	var l listing
	l.tools, l.err = s.Tools(ctx)
	if n, ok := s.(Namespaced); ok {
		l.spaces = n.Namespaces()
	}
	return l
}

// same tells whether two listings are equal. That takes nanoseconds for a source that
// returns one shared slice until something changes, and tens of nanoseconds per tool
// for one that builds a new slice each time.
func (l listing) same(other listing) bool {
	if l.err != nil || other.err != nil || len(l.tools) != len(other.tools) || !slices.Equal(l.spaces, other.spaces) {
		return false
	}
	if len(l.tools) == 0 || &l.tools[0] == &other.tools[0] {
		return true
	}
	for i := range l.tools {
		if a, b := &l.tools[i], &other.tools[i]; a.Stale != b.Stale || !a.Same(b) {
			return false
		}
	}
	return true
}

// view is all tools at one moment. It is never changed.
type view struct {
	namespaces map[string]*namespaceTools
	sorted     []string // names of namespaces: our own ("") first, then by priority, then by name
	tools      []tool.Info
	names      map[string]tool.Ref          // every way to write a tool's name
	aliases    map[string]tool.Ref          // spellings in the names of a scope; nil: it has none
	orgs       map[string]map[string]string // names of organisations for their own namespaces
	scripts    map[string]map[string]string // names of organisations for their own scripts
	routes     []route
	exposed    exposed
	models     *view // without the tools that only pages of MCP Apps call; nil: there are none
}

// forModels is the view of what models are shown.
func (v *view) forModels() *view {
	if v.models != nil {
		return v.models
	}
	return v
}

func (v *view) find(ref tool.Ref) *entry {
	if s := v.namespaces[ref.Space]; s != nil {
		return s.find(ref.Name)
	}
	return nil
}

// refresh reads all sources without holding a lock, and returns the view of what they
// listed.
func (c *Catalog) refresh(ctx context.Context) *view {
	c.mu.Lock()
	members := slices.Clone(c.members)
	last := make([]member, len(members))
	for i, m := range members {
		last[i] = *m
	}
	c.mu.Unlock()

	ticket := c.tickets.Add(1)
	now := make([]listing, len(members))
	changed := false
	for i, m := range members {
		now[i] = read(ctx, m.source)
		changed = changed || last[i].ticket == 0 || !now[i].same(last[i].listing)
	}
	if !changed {
		return c.view.Load()
	}
	v, after := c.commit(ticket, members, now)
	for _, f := range after {
		f()
	}
	return v
}

// commit stores what a reading found, except where a later reading was faster, and
// returns the new view with the functions to call once mu is free.
func (c *Catalog) commit(ticket uint64, members []*member, now []listing) (*view, []func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, m := range members {
		if m.ticket > ticket {
			continue
		}
		m.ticket = ticket
		c.report(m, now[i])
		if now[i].err != nil { // use what it listed before
			now[i].tools, now[i].err = m.listing.tools, nil
		}
		m.listing = now[i]
	}
	return c.rebuild()
}

// report logs that a source cannot list its tools, once per error.
func (c *Catalog) report(m *member, l listing) {
	trouble := ""
	if l.err != nil {
		trouble = l.err.Error()
	}
	if trouble != "" && trouble != m.lastError {
		c.options.Log.Warn("tools cannot be listed", "error", trouble)
	}
	m.lastError = trouble
}

// rebuild makes a view of the members' listings; mu is held. Namespaces in which
// nothing changed are reused.
func (c *Catalog) rebuild() (*view, []func()) {
	old := c.view.Load()
	v := &view{namespaces: map[string]*namespaceTools{}}
	for name, s := range c.gather() {
		v.namespaces[name] = s.reuse(old.namespaces[name], c.options.Limits)
	}
	v.sorted = slices.SortedFunc(maps.Keys(v.namespaces), v.order)
	if !differ(old, v) {
		return old, nil
	}
	v.orgs, v.scripts = orgsOf(v.sorted), orgsOf(v.namespaces[""].names())
	parts := make([][]tool.Info, len(v.sorted))
	for i, name := range v.sorted {
		parts[i] = v.namespaces[name].tools
	}
	v.tools = slices.Concat(parts...)
	return c.publish(old, v)
}

// order compares two namespaces by their place in lists.
func (v *view) order(a, b string) int {
	if a == "" || b == "" {
		return strings.Compare(a, b)
	}
	return cmp.Or(cmp.Compare(v.namespaces[b].priority(), v.namespaces[a].priority()), strings.Compare(a, b))
}

// differ tells whether any namespace has changed.
func differ(old, v *view) bool {
	if old.names == nil || len(old.namespaces) != len(v.namespaces) {
		return true
	}
	for name, s := range v.namespaces {
		if old.namespaces[name] != s {
			return true
		}
	}
	return false
}

// publish assigns names to the tools of v, makes it the current view, and returns the
// functions to call once mu is free.
func (c *Catalog) publish(old, v *view) (*view, []func()) {
	if v.names = old.names; v.names == nil || !sameNames(old.tools, v.tools) {
		v.names = c.names.assign(v.tools)
	}
	v.routes = routesOf(c.exposure)
	v.exposed = v.expose(c.exposure, c.pinned, c.names)
	if v.models = nil; slices.ContainsFunc(v.tools, func(info tool.Info) bool { return info.App.Hidden }) {
		v.models = v.narrowed(func(ref tool.Ref) bool { e := v.find(ref); return e == nil || !e.info.App.Hidden })
	}
	c.view.Store(v)
	var after []func()
	if old.names != nil && old.exposed.hash == v.exposed.hash {
		return v, nil
	}
	after = append(after, func() { c.options.Bus.Publish(Changed{Hash: v.exposed.hash, Tools: len(v.exposed.tools)}) })
	for f := range c.watchers {
		after = append(after, *f)
	}
	return v, after
}

// sameNames tells whether two lists are of tools with the same names.
func sameNames(a, b []tool.Info) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Ref != b[i].Ref || a[i].Original != b[i].Original {
			return false
		}
	}
	return true
}

// gather groups the tools of all members by namespace.
func (c *Catalog) gather() map[string]*namespaceTools {
	namespaces := map[string]*namespaceTools{}
	get := func(name string) *namespaceTools {
		s := namespaces[name]
		if s == nil {
			s = &namespaceTools{space: name}
			namespaces[name] = s
		}
		return s
	}
	for _, m := range c.members {
		for _, name := range m.listing.spaces {
			if s := get(name); s.owner == nil {
				s.owner = m.source
			}
		}
		for part := range bySpace(m.listing.tools) {
			s := get(part[0].Space)
			s.reserve(len(part))
			for _, info := range part {
				if !s.put(info, m.source) {
					c.options.Log.Debug("tool offered twice, the first one counts", "tool", info.Ref.String())
				}
			}
		}
	}
	for _, s := range namespaces {
		slices.SortFunc(s.tools, func(a, b tool.Info) int {
			return cmp.Or(cmp.Compare(b.Priority, a.Priority), strings.Compare(sortName(&a), sortName(&b)), strings.Compare(a.Name, b.Name))
		})
	}
	return namespaces
}

// sortName is the name by which a tool has its place: that of a script without its
// organisation, so that the place is the same for members.
func sortName(info *tool.Info) string {
	if info.Space != "" {
		return info.Name
	}
	name, _ := principal.SplitNamespace(info.Name)
	return name
}

// bySpace splits a list where the next namespace begins.
func bySpace(tools []tool.Info) iter.Seq[[]tool.Info] {
	return func(yield func([]tool.Info) bool) {
		for begin, end := 0, 0; begin < len(tools); begin = end {
			for end < len(tools) && tools[end].Space == tools[begin].Space {
				end++
			}
			if !yield(tools[begin:end]) {
				return
			}
		}
	}
}

// namespaceTools is the tools of one namespace, and the state that lives as long as the
// namespace. It is not changed once it is part of a view.
type namespaceTools struct {
	space      string
	tools      []tool.Info // by priority, then by name
	entries    map[string]*entry
	byOriginal map[string]*entry // renamed tools by their upstream's names; nil: none is renamed
	owner      tool.Source       // the source that claims the namespace; may be nil
	state      *namespaceState
	search     *lazyIndex
	origin     *namespaceTools // the same tools by their own names; nil: these are their own
}

// real is the namespace under its own name.
func (s *namespaceTools) real() *namespaceTools {
	if s.origin != nil {
		return s.origin
	}
	return s
}

// entry is one tool and what a call of it needs.
type entry struct {
	info    tool.Info
	source  tool.Source
	state   *namespaceState
	hidden  error                       // why no caller may use it; nil: callers may
	schema  atomic.Pointer[schema]      // compiled by the first call
	exposed atomic.Pointer[exposedInfo] // as the hub last exposed it; nil: not exposed

	variants variants // as single callers have it
}

// find looks up a tool by its name or by its upstream's name for it.
func (s *namespaceTools) find(name string) *entry {
	if e := s.entries[name]; e != nil {
		return e
	}
	return s.byOriginal[name]
}

// reserve allocates for the expected number of tools.
func (s *namespaceTools) reserve(tools int) {
	if s.tools == nil {
		s.tools, s.entries = make([]tool.Info, 0, tools), make(map[string]*entry, tools)
	}
}

// put adds a tool, and tells whether its name was free.
func (s *namespaceTools) put(info tool.Info, source tool.Source) bool {
	if s.entries[info.Name] != nil {
		return false
	}
	e := &entry{info: info, source: source}
	s.entries[info.Name] = e
	s.tools = append(s.tools, info)
	if info.Original != "" {
		if s.byOriginal == nil {
			s.byOriginal = map[string]*entry{}
		}
		s.byOriginal[info.Original] = e
	}
	return true
}

// priority is the highest priority of the tools.
func (s *namespaceTools) priority() int {
	if len(s.tools) == 0 {
		return 0
	}
	return s.tools[0].Priority
}

// lazyIndex is a search index that the first search builds.
type lazyIndex struct {
	mu      sync.Mutex
	index   *search.Index
	server  string // what it was built with
	learned int
}

// outdated tells whether enough has been learned since the index was built that it is
// worth reading all tools again. What is learned first matters most.
func (x *lazyIndex) outdated(known *Known) bool {
	return x.index == nil || x.server != known.Server || 8*(known.Learned-x.learned) > x.learned
}

// reuse takes over the state of the namespace from the last view, or returns the old
// value itself when nothing has changed.
func (s *namespaceTools) reuse(old *namespaceTools, limits func(string) Limits) *namespaceTools {
	if old == nil {
		s.state = newNamespaceState(s.space, limits)
		s.search = &lazyIndex{}
	} else {
		same, text := s.compare(old)
		if same {
			return old
		}
		s.state, s.search = old.state, &lazyIndex{}
		if text {
			s.search = old.search
		}
	}
	for _, e := range s.entries {
		e.state = s.state
	}
	return s
}

// compare tells whether two values are equal, and whether at least all that is searched
// is equal.
func (s *namespaceTools) compare(old *namespaceTools) (same, text bool) {
	if len(s.tools) != len(old.tools) {
		return false, false
	}
	same = s.owner == old.owner
	for i := range s.tools {
		a, b := &s.tools[i], &old.tools[i]
		if !a.Same(b) {
			return false, false
		}
		same = same && a.Stale == b.Stale && s.entries[a.Name].source == old.entries[a.Name].source
	}
	return same, true
}

// index is the search index. The first use builds it.
func (s *namespaceTools) index(known Known) *search.Index {
	x := s.search
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.outdated(&known) {
		x.index, x.server, x.learned = search.NewIndex(s.tools, known.Context), known.Server, known.Learned
	}
	return x.index
}

// digest is a hash of everything that a client sees of a tool.
func digest(info *tool.Info) [sha256.Size]byte {
	all := make([]byte, 0, 2*len(info.Raw)+len(info.Description)+256) // schemas are in Raw too
	for _, part := range []string{info.Space, info.Name, info.Title, info.Description} {
		all = append(append(all, part...), 0)
	}
	for _, part := range []json.RawMessage{info.Input, info.Output, info.Raw} {
		all = append(append(all, part...), 0)
	}
	return sha256.Sum256(all)
}
