package upstream

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// known is what is known of a server, also while it is not connected: its tools, how it was
// reached and what it said about itself. Its lock is its own. It changes before the phase
// does, so that whoever has seen the phase sees what belongs to it.
type known struct {
	who *who

	mu     sync.Mutex
	source *session // it is up to date with this one; nil: of an earlier one or of the cache
	tools  *listing
	stale  bool   // there is no session any more that the tools are from
	listed bool   // the server has listed its tools on this connection
	record record // what else is stored
	offering
	hasOffering chan struct{} // closed and nil once a server has listed its offering
	view        toolView
	labels      map[string]*spanLabel // of the tools that were called since they were listed
	people      perPerson
}

// set replaces the tools; k.mu is held.
func (k *known) set(tools *listing, stale bool) (before *listing) {
	before = k.tools
	k.tools, k.stale, k.labels = tools, stale, nil
	return before
}

// toolView is the result of visible, and what it was made of.
type toolView struct {
	of    *listing
	stale bool
	spec  *Spec
	tools []tool.Info
}

// connected takes the list of a new session. It returns the previous one.
func (k *known) connected(s *session, list *listing) (before *listing) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.source, k.listed = s, true
	_, revision := s.describe()
	k.record = record{
		Server: identity(*k.who.spec.Load()), Detected: detection{s.endpoint, s.era}, Revision: revision,
		ServerInfo: s.serverInfo, Capabilities: s.capabilities, Instructions: s.instructions, Start: k.record.Start.and(s.start),
	}
	return k.set(list, false)
}

// refreshed takes a further list of a session. It returns the previous one; nil if the session
// is over, and the list of no use.
func (k *known) refreshed(s *session, list *listing) (before *listing) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.source != s {
		return nil
	}
	return k.set(list, false)
}

// lost records that a session is over.
func (k *known) lost(s *session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.source == s {
		k.source, k.stale = nil, true
	}
}

// refused is the current list, for a server that refuses to list its tools now.
func (k *known) refused(err error) *listing {
	k.mu.Lock()
	defer k.mu.Unlock()
	return &listing{
		tools: k.tools.tools, headers: k.tools.headers, tasks: k.tools.tasks,
		incomplete: []string{fmt.Sprintf("tools cannot be listed: %v", err)},
	}
}

// load begins with the stored record of the server, unless there is one already.
func (k *known) load(stored record, tools *listing) (loaded bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.record.Server != "" {
		return false
	}
	k.record, k.offering = stored, stored.offering
	k.set(tools, true)
	return true
}

// save returns the record with the tools, as they are stored and as a list.
func (k *known) save() (record, *listing) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.record.Server, k.record.Tools, k.record.offering = identity(*k.who.spec.Load()), definitions(k.tools.tools), k.offering
	return k.record, k.tools
}

// stored is the record of the server; its Server is empty if there is none.
func (k *known) stored() record {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.record
}

// inherit takes over from the connection that this one replaces, if the server is the same. A
// session that there is already knows better.
func (k *known) inherit(old *known) {
	old.mu.Lock()
	stored, tools, offered, lists, offerings := old.record, old.tools, old.offering, maps.Clone(old.people.lists), maps.Clone(old.people.offerings)
	old.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.people.lists, k.people.offerings = lists, offerings
	if k.source == nil {
		k.record, k.offering = stored, offered
		k.set(tools, true)
	}
}

// learnFrom begins with what the connection that lists tools knows of the server.
func (k *known) learnFrom(lister *known) {
	lister.mu.Lock()
	defer lister.mu.Unlock()
	k.set(lister.listFor(k.who.owner), true)
	k.record, k.offering = lister.record, lister.offering
	if own := lister.people.offerings[k.who.owner]; own != nil {
		k.offering = *own
	}
}

// prepare adds to a call what is known of its tool; a tool that is not listed has no hints.
func (k *known) prepare(r *outcall, args []byte) (info tool.Info, support taskSupport) {
	k.mu.Lock()
	defer k.mu.Unlock()
	info, listed := k.tools.find(r.about)
	for _, p := range k.tools.headers[r.about] {
		if value, ok := p.Value(args); ok {
			r.headers = append(r.headers, Header{p.Header, value})
		}
	}
	if listed {
		r.label = k.label(info.Name)
	}
	return info, k.tools.tasks[r.about]
}

// label is the span label of a listed tool; k.mu is held.
func (k *known) label(name string) *spanLabel {
	label := k.labels[name]
	if label == nil {
		if k.labels == nil {
			k.labels = map[string]*spanLabel{}
		}
		label = newSpanLabel(k.who.name, wire.MethodToolsCall, name)
		label.listed = true
		k.labels[name] = label
	}
	return label
}

// find finds a tool as an owner has it.
func (k *known) find(owner, name string) (tool.Info, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.listFor(owner).find(name)
}

// list is the tools that the server last listed.
func (k *known) list() []tool.Info {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tools.tools
}

// visible lists the allowed tools in the order of their names. It returns the same slice
// until something changes, so that callers can compare cheaply.
func (k *known) visible() []tool.Info {
	spec := k.who.spec.Load()
	k.mu.Lock()
	defer k.mu.Unlock()
	offered := k.offers()
	if k.view.of == offered && k.view.stale == k.stale && k.view.spec == spec {
		return k.view.tools
	}
	tools := spec.allowed(offered.tools)
	if k.stale {
		tools = slices.Clone(tools)
		for i := range tools {
			tools[i].Stale = true
		}
	}
	k.view = toolView{of: offered, stale: k.stale, spec: spec, tools: tools}
	return tools
}

// describe adds to a status what is known.
func (k *known) describe(st *Status) {
	k.mu.Lock()
	defer k.mu.Unlock()
	tools, spec := k.tools.tools, k.who.spec.Load()
	st.Transport, st.Era = k.record.Detected.Endpoint.Transport, k.record.Detected.eraText()
	st.Revision, st.ServerInfo = k.record.Revision, k.record.ServerInfo
	st.Tools, st.Stale = len(spec.allowed(tools)), k.stale
	st.Dropped, st.Trouble, st.Mistaken = k.tools.problems(), k.tools.trouble(), spec.unknownNames(tools)
}

// perPerson is what single owners were shown of an upstream whose spec is Personal, on the
// connection without an owner. It is guarded by the lock of known.
//
// What only one person was shown may be about that person. So a principal gets the tools of
// everybody, which are those that all owners have alike, and those of the own list. offers has
// them all; OwnTools says which of them are not for a principal, or otherwise.
type perPerson struct {
	lists     map[string]*listing   // by owner
	offerings map[string]*offering  // likewise
	offered   *listing              // the result of offers
	offeredOf *listing              // the tools for everybody that it was made of
	own       map[*listing]OwnTools // by list: how it differs from what is offered
	ownOf     *listing              // what was offered then
	ownSpec   *Spec                 // and allowed
}

// listFor is the last known tools of an owner, or else those that are listed for everybody;
// k.mu is held.
func (k *known) listFor(owner string) *listing {
	if own := k.people.lists[owner]; own != nil {
		return own
	}
	return k.tools
}

// maxLists is how many lists of owners are kept of one upstream.
const maxLists = 1000

// learn keeps the tools of an owner. While the server does not list its tools without a
// login, those that all owners have alike are listed for everybody, by their definitions. It
// returns what was listed for everybody before and is now, and whether the tools that anybody
// has are others.
func (k *known) learn(owner string, list *listing, r record) (before, after []tool.Info, differ bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := &k.people
	before = k.tools.tools
	offered := k.offers().tools
	if p.lists == nil || len(p.lists) >= maxLists {
		p.lists = map[string]*listing{}
	}
	if own := p.lists[owner]; own == nil || !sameTools(own, list) {
		p.lists[owner] = list
	}
	if common := p.common(owner, list); !k.listed && len(common.tools) > 0 {
		r.Instructions = nil
		r.Detected.Endpoint.URL = "" // it may have values of the owner
		k.record = r
		k.set(common, false)
	}
	if sameTools(list, k.tools) { // most people have the same: one copy is enough
		p.lists[owner] = k.tools
	}
	p.offered = nil
	return before, k.tools.tools, !slices.EqualFunc(offered, k.offers().tools, sameTool)
}

// common is the tools of a list that all owners have alike. There must be a second owner,
// unless it is that of the machine, who is the only one there.
func (p *perPerson) common(owner string, list *listing) *listing {
	if len(p.lists) < 2 && owner != principal.LocalID {
		return &listing{}
	}
	common := *list
	common.tools = slices.DeleteFunc(slices.Clone(list.tools), func(info tool.Info) bool {
		for _, other := range p.lists {
			if its, has := other.find(info.Name); !has || !sameTool(its, info) {
				return true
			}
		}
		return false
	})
	if len(common.tools) == len(list.tools) {
		return list
	}
	return &common
}

// forgetOwners forgets the tools of owners who are gone.
func (k *known) forgetOwners(gone func(owner string) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.people.lists, func(owner string, _ *listing) bool { return gone(owner) })
	k.people.forgetOfferings(gone)
	k.people.offered = nil
}

func sameTools(a, b *listing) bool { return slices.EqualFunc(a.tools, b.tools, sameTool) }

func sameTool(a, b tool.Info) bool { return a.Name == b.Name && sameJSON(a.Raw, b.Raw) }

// offers is all tools that anybody has: those for everybody, and those of owners; k.mu is
// held.
func (k *known) offers() *listing {
	p := &k.people
	if len(p.lists) == 0 {
		return k.tools
	}
	if p.offered != nil && p.offeredOf == k.tools {
		return p.offered
	}
	all := *k.tools
	all.tools = slices.Clone(k.tools.tools)
	seen := map[string]bool{}
	for i := range all.tools {
		seen[all.tools[i].Name] = true
	}
	for _, owner := range slices.Sorted(maps.Keys(p.lists)) {
		list := p.lists[owner]
		for i := range list.tools {
			if info := list.tools[i]; list != k.tools && !seen[info.Name] {
				seen[info.Name] = true
				all.tools = append(all.tools, info)
			}
		}
	}
	all.sort()
	p.offered, p.offeredOf = &all, k.tools
	if len(all.tools) == len(k.tools.tools) {
		p.offered = k.tools
	}
	return p.offered
}

// OwnTools says how the tools of one principal at an upstream differ from those that anybody
// has there, by the upstream's names. It is not changed.
type OwnTools struct {
	Lacks   map[string]bool       // those that only others have
	Defined map[string]*tool.Info // those that are defined otherwise
}

// ownTools is that of an owner.
func (k *known) ownTools(owner string) OwnTools {
	spec := k.who.spec.Load()
	k.mu.Lock()
	defer k.mu.Unlock()
	all, list, p := k.offers(), k.listFor(owner), &k.people
	if all == list {
		return OwnTools{}
	}
	if p.ownOf != all || p.ownSpec != spec {
		p.own, p.ownOf, p.ownSpec = map[*listing]OwnTools{}, all, spec
	}
	own, found := p.own[list]
	if !found {
		own = compare(spec.allowed(list.tools), all)
		p.own[list] = own
	}
	return own
}

// compare says how the tools of an owner differ from all that are offered.
func compare(allowed []tool.Info, all *listing) OwnTools {
	own := OwnTools{map[string]bool{}, map[string]*tool.Info{}}
	for i := range all.tools {
		own.Lacks[all.tools[i].Name] = true
	}
	for i := range allowed {
		info := &allowed[i] // the same as long as the list is
		delete(own.Lacks, info.Name)
		if offered, _ := all.find(info.Name); !sameTool(*info, offered) {
			own.Defined[info.Name] = info
		}
	}
	return own
}
