package catalog

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/core/tool"
)

// Namespaced is a source that can tell its namespaces before it knows their tools.
type Namespaced interface {
	Namespaces() []string
}

// member is a source and what it last said.
type member struct {
	source    tool.Source
	ticket    uint64 // of the reading that listing comes from
	listing   listing
	lastError string // the last error it listed with, so that it is told once
}

// listing is what a source said when it was read.
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

// same tells whether two listings say the same. For a source that hands out one
// shared slice until something changes it takes nanoseconds; for one that puts a
// new slice together each time, some tens of nanoseconds per tool, since what the
// slices point to is the same.
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

// view is a picture of all tools at one moment. It is never changed.
type view struct {
	namespaces map[string]*namespaceTools
	sorted     []string // names of shelves: our own ("") first, then by priority, then by name
	tools      []tool.Info
	names      map[string]tool.Ref // every way to write a tool's name
	routes     []route
	exposed    exposed
}

func (v *view) find(ref tool.Ref) *entry {
	if s := v.namespaces[ref.Space]; s != nil {
		return s.find(ref.Name)
	}
	return nil
}

// refresh reads all sources, without holding a lock, and returns the picture
// that has what they said.
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
	v, tell := c.commit(ticket, members, now)
	for _, f := range tell {
		f()
	}
	return v
}

// commit takes over what a reading found, except where a later one was faster,
// and returns the new picture with what has to be told about it.
func (c *Catalog) commit(ticket uint64, members []*member, now []listing) (*view, []func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, m := range members {
		if m.ticket > ticket {
			continue
		}
		m.ticket = ticket
		c.report(m, now[i])
		if now[i].err != nil { // what it said before is the best we know
			now[i].tools, now[i].err = m.listing.tools, nil
		}
		m.listing = now[i]
	}
	return c.rebuild()
}

// report tells of a source that cannot list its tools, once per kind of trouble.
func (c *Catalog) report(m *member, l listing) {
	trouble := ""
	if l.err != nil {
		trouble = l.err.Error()
	}
	if trouble != "" && trouble != m.lastError {
		c.log.Warn("tools cannot be listed", "error", trouble)
	}
	m.lastError = trouble
}

// rebuild makes a picture of the members' listings; mu is held. Shelves on which
// nothing changed are taken over from the last one.
func (c *Catalog) rebuild() (*view, []func()) {
	old := c.view.Load()
	v := &view{namespaces: map[string]*namespaceTools{}}
	for name, s := range c.gather() {
		v.namespaces[name] = s.reuse(old.namespaces[name], c.limits)
	}
	v.sorted = slices.SortedFunc(maps.Keys(v.namespaces), v.order)
	if !differ(old, v) {
		return old, nil
	}
	parts := make([][]tool.Info, len(v.sorted))
	for i, name := range v.sorted {
		parts[i] = v.namespaces[name].tools
	}
	v.tools = slices.Concat(parts...)
	return c.publish(old, v)
}

// order says which of two namespaces comes first.
func (v *view) order(a, b string) int {
	if a == "" || b == "" {
		return strings.Compare(a, b)
	}
	return cmp.Or(cmp.Compare(v.namespaces[b].priority(), v.namespaces[a].priority()), strings.Compare(a, b))
}

// differ tells whether any shelf is another one than before.
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

// publish names the tools of v, makes it the current picture, and returns what
// has to be told once mu is free.
func (c *Catalog) publish(old, v *view) (*view, []func()) {
	if v.names = old.names; v.names == nil || !sameNames(old.tools, v.tools) {
		v.names = c.names.assign(v.tools)
	}
	v.routes = routesOf(c.exposure)
	v.exposed = v.expose(c.exposure, c.pinned, c.names)
	c.view.Store(v)
	var tell []func()
	if old.names != nil && old.exposed.hash == v.exposed.hash {
		return v, nil
	}
	tell = append(tell, func() { c.bus.Publish(Changed{Hash: v.exposed.hash, Tools: len(v.exposed.tools)}) })
	for f := range c.watchers {
		tell = append(tell, *f)
	}
	return v, tell
}

// sameNames tells whether two lists are of tools of the same names.
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

// gather puts the tools of all members on fresh shelves, by namespace.
func (c *Catalog) gather() map[string]*namespaceTools {
	shelves := map[string]*namespaceTools{}
	get := func(name string) *namespaceTools {
		s := shelves[name]
		if s == nil {
			s = &namespaceTools{space: name}
			shelves[name] = s
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
					c.log.Debug("tool offered twice, the first one counts", "tool", info.Ref.String())
				}
			}
		}
	}
	for _, s := range shelves {
		slices.SortFunc(s.tools, func(a, b tool.Info) int {
			return cmp.Or(cmp.Compare(b.Priority, a.Priority), strings.Compare(a.Name, b.Name))
		})
	}
	return shelves
}

// bySpace cuts a list where the next namespace begins.
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
