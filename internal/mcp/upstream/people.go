package upstream

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
)

// connectionFor is the connection over which requests of the principal of ctx go. If the
// upstream has one for each principal, it is that of this one and never another.
func (m *Manager) connectionFor(ctx context.Context, name string) (*connection, error) {
	c, err := m.connection(name)
	if err != nil || !c.personal {
		return c, err
	}
	owner := principal.Of(ctx).LoginOwner()
	m.mu.Lock()
	own := m.people[name][owner]
	m.mu.Unlock()
	if own == nil {
		return m.connectPerson(ctx, c, owner)
	}
	own.retryLogin()
	return own, nil
}

// connectPerson starts the connection of an owner, unless another request was faster.
func (m *Manager) connectPerson(ctx context.Context, listing *connection, owner string) (*connection, error) {
	who := Person{ID: owner}
	if m.opts.Person != nil {
		var err error
		if who, err = m.opts.Person(ctx, owner); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	name := listing.name
	if m.closed || m.running[name] != listing {
		return nil, fault.Wrap(fault.Unavailable, errRemoved, "connect to %s", name)
	}
	if own := m.people[name][owner]; own != nil {
		return own, nil
	}
	spec := listing.currentSpec()
	if len(m.people[name]) >= spec.people() && !m.endUnused(name) {
		return nil, fault.New(fault.Limit, "upstream %s: %d people use it, which is its limit", name, spec.people()).
			WithHint("try again when somebody has finished, or raise people of upstream %s", name)
	}
	return m.startPerson(spec.of(owner, who), listing), nil
}

// of is the spec of the connection of an owner.
func (s Spec) of(owner string, who Person) Spec {
	s.Owner, s.Person = owner, who
	return s
}

// startPerson starts the connection of an owner; m.mu is held.
func (m *Manager) startPerson(spec Spec, listing *connection) *connection {
	m.generation++
	c := newConnection(&m.opts, spec, m.generation)
	c.listing, c.end = listing, m.endPerson
	c.learnFrom(listing)
	if m.people[c.name] == nil {
		m.people[c.name] = map[string]*connection{}
	}
	m.people[c.name][c.owner] = c
	m.launch(c)
	return c
}

// endPerson ends the connection of an owner, because it is not used any more.
func (m *Manager) endPerson(c *connection) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopPerson(c)
}

// stopPerson ends the connection of an owner; m.mu is held.
func (m *Manager) stopPerson(c *connection) {
	if m.people[c.name][c.owner] != c {
		return
	}
	delete(m.people[c.name], c.owner)
	if len(m.people[c.name]) == 0 {
		delete(m.people, c.name)
	}
	m.finish(c)
}

// endUnused ends the connection that was not used for the longest time, to make place for
// another; m.mu is held. It reports whether there was one.
func (m *Manager) endUnused(name string) bool {
	var oldest *connection
	var since time.Time
	for _, c := range m.people[name] {
		if used, last := c.inUse(); !used && (oldest == nil || last.Before(since)) {
			oldest, since = c, last
		}
	}
	if oldest != nil {
		m.stopPerson(oldest)
	}
	return oldest != nil
}

// stopPeople ends the connections of all owners to an upstream; m.mu is held.
func (m *Manager) stopPeople(name string) (ended []*connection) {
	for _, c := range m.people[name] {
		ended = append(ended, c)
		m.stopPerson(c)
	}
	return ended
}

// restartPeople ends the connections of all owners, because the spec has changed. Those who
// wait for changes of resources get a new one, others when they need it. m.mu is held.
func (m *Manager) restartPeople(listing *connection) {
	for _, old := range m.stopPeople(listing.name) {
		if spec := old.currentSpec(); listing.personal && old.hasSubscribers() {
			m.startPerson(listing.currentSpec().of(spec.Owner, spec.Person), listing).inheritFrom(old)
		}
	}
}

// adjustPeople gives the connections of all owners settings that need no new connection;
// m.mu is held.
func (m *Manager) adjustPeople(spec Spec) {
	for _, c := range m.people[spec.Name] {
		old := c.currentSpec()
		c.adjust(spec.of(old.Owner, old.Person))
	}
}

// EndPeople ends all connections of the owners that gone reports, with their calls and
// processes. It returns at once.
func (m *Manager) EndPeople(gone func(owner string) bool) {
	for _, c := range m.everyConnection() {
		if c.owner != "" && gone(c.owner) {
			m.endPerson(c)
		} else if c.listsOnly() {
			c.forgetOwners(gone)
		}
	}
}

// RenewPerson ends the connections of an owner that use values of theirs, because a value
// has changed. The next call connects anew.
func (m *Manager) RenewPerson(owner string) {
	for _, c := range m.everyConnection() {
		if c.owner == owner && owner != "" && c.currentSpec().needsPerson() {
			m.endPerson(c)
		}
	}
}

// everyConnection lists the connections of all upstreams and owners.
func (m *Manager) everyConnection() []*connection {
	list := m.connections()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, people := range m.people {
		for _, c := range people {
			list = append(list, c)
		}
	}
	return list
}

// withPeople adds to the status of an upstream how many principals are connected. That it
// does not list its tools without a login is no fault.
func (m *Manager) withPeople(st Status) Status {
	if !st.Desired.Personal() {
		return st
	}
	if st.State == StateAsleep {
		st.LastError, st.Hint = "", ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	st.Login, st.People = st.Desired.Login, len(m.people[st.Name])
	return st
}

// PersonStatus is the state of the connection of a principal to an upstream. ok is false
// if the upstream has no connection for each.
func (m *Manager) PersonStatus(ctx context.Context, name string) (st Status, ok bool) {
	listing, err := m.connection(name)
	if err != nil || !listing.personal {
		return st, false
	}
	owner := principal.Of(ctx).LoginOwner()
	m.mu.Lock()
	own := m.people[name][owner]
	m.mu.Unlock()
	if own != nil {
		return own.status(), true
	}
	st = listing.status()
	st.State, st.LastError, st.Hint = StateAsleep, "", ""
	return st, true
}

// Own returns, by upstream, how the tools of the principal of ctx differ from those that
// anybody has; nil: nowhere.
func (m *Manager) Own(ctx context.Context) map[string]OwnTools {
	if m.personalUpstreams.Load() == 0 {
		return nil
	}
	owner := principal.Of(ctx).LoginOwner()
	var all map[string]OwnTools
	for _, c := range m.connections() {
		if !c.personal {
			continue
		}
		if own := c.ownTools(owner); len(own.Lacks)+len(own.Defined) > 0 {
			if all == nil {
				all = map[string]OwnTools{}
			}
			all[c.name] = own
		}
	}
	return all
}

// A connection of an upstream whose spec is Personal is either that of one principal, its
// owner, over which the owner's requests go, or the one without an owner, which only lists
// the tools if the server lets it. The latter keeps what is known of the tools of others.

// connectAttempt is what opens sessions with a spec. A connection without an owner has none of
// the values of people, and is not opened if it needs them.
func (c *connection) connectAttempt(ctx context.Context, spec Spec) (connectAttempt, error) {
	spec, err := c.opts.resolve(ctx, spec)
	return connectAttempt{opts: c.opts, spec: spec, notify: c.notifyWatchers, hooks: c.hooks(), roots: c, lost: c.failSession}, err
}

// listsOnly reports whether the connection is for listing tools only.
func (c *connection) listsOnly() bool { return c.personal && c.owner == "" }

// ends reports whether the connection of a principal ends, rather than sleeps, after err.
func (c *connection) ends(err error) bool {
	return c.owner != "" && (errors.Is(err, errIdle) || c.unused())
}

// isDenied reports whether the owner may not connect. Another attempt would end like this one,
// so there is none before the owner's next request.
func (c *connection) isDenied(err error) bool {
	return c.owner != "" && fault.CodeOf(err) == fault.Denied
}

// refusesListing reports whether the server does not list its tools without a login: then
// it is not asked again until there may be one.
func (c *connection) refusesListing(err error) bool {
	_, auth := isAuthError(err)
	return auth && c.listsOnly()
}

// retryLogin makes another attempt if the last one lacked credentials: the owner may have
// logged in since.
func (c *connection) retryLogin() {
	c.mu.Lock()
	missing := c.state == StateNeedsAuth
	c.mu.Unlock()
	if !missing {
		return
	}
	c.update(func() {
		if c.state == StateNeedsAuth { // others see an attempt in progress, and wait for it
			c.state, c.since = StateConnecting, time.Now()
			signal(c.retry)
		}
	})
}

// hasSubscribers reports whether the owner waits for changes of resources.
func (c *connection) hasSubscribers() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.owner != "" && len(c.subscribers) > 0
}

// inUse reports whether ending the connection would be noticed, and when it was last used.
func (c *connection) inUse() (used bool, last time.Time) {
	c.mu.Lock()
	s, last := c.session, c.lastUsed
	used = c.waiters > 0 || c.stats.InFlight > 0 || len(c.subscribers) > 0
	c.mu.Unlock()
	return used || s != nil && s.activeCalls() > 0, last
}

// learnFrom begins with what the connection that lists tools knows of the server.
func (c *connection) learnFrom(listing *connection) {
	listing.mu.Lock()
	defer listing.mu.Unlock()
	c.tools, c.stale, c.cached = listing.listFor(c.owner).forAnother(), true, listing.cached
	if listing.spec.query() == "" {
		c.detected = listing.detected
	}
	c.lastUsed = time.Now()
}

// forAnother is the list for another connection, which guards its own span labels. The mu
// of the connection that has the list is held.
func (l *toolList) forAnother() *toolList {
	other := *l
	other.spanLabels = nil
	return &other
}

// listFor is the last known tools of an owner, or else those that are listed for everybody;
// c.mu is held.
func (c *connection) listFor(owner string) *toolList {
	if own := c.lists[owner]; own != nil {
		return own
	}
	return c.tools
}

// maxLists is how many lists of owners are kept of one upstream.
const maxLists = 1000

// learn keeps the tools of an owner. While the server does not list its tools without a
// login, those that all owners have alike are listed for everybody, by their definitions.
func (c *connection) learn(owner string, list *toolList, r record) {
	var before, after, offered []tool.Info
	c.update(func() {
		before, offered = c.tools.tools, c.offers().tools
		if c.lists == nil || len(c.lists) >= maxLists {
			c.lists = map[string]*toolList{}
		}
		if known := c.lists[owner]; known == nil || !sameTools(known, list) {
			c.lists[owner] = list
		}
		if common := c.commonTools(owner, list); !c.listed && len(common.tools) > 0 {
			r.Instructions = nil
			c.tools, c.stale, c.cached = common, false, r
		}
		if sameTools(list, c.tools) { // most people have the same: one copy is enough
			c.lists[owner] = c.tools
		}
		c.offered = nil
		after = c.tools.tools
	})
	added, removed, changed := diff(before, after)
	differs := len(added)+len(removed)+len(changed) > 0
	if differs {
		c.saveLearned()
	}
	c.mu.Lock()
	differs = differs || !slices.EqualFunc(offered, c.offers().tools, sameTool)
	c.mu.Unlock()
	if differs {
		c.publish(ToolsRefreshed{Upstream: c.name, ToolCount: len(after), Added: added, Removed: removed, Changed: changed})
	}
}

// commonTools is the tools of a list that all owners have alike; c.mu is held. What only one
// person was shown may be about that person, so there must be a second; the owner of the
// machine is the only one there.
func (c *connection) commonTools(owner string, list *toolList) *toolList {
	if len(c.lists) < 2 && owner != principal.LocalID {
		return &toolList{}
	}
	common := *list
	common.tools = slices.DeleteFunc(slices.Clone(list.tools), func(info tool.Info) bool {
		for _, other := range c.lists {
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
func (c *connection) forgetOwners(gone func(owner string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.lists, func(owner string, _ *toolList) bool { return gone(owner) })
	c.offered = nil
}

// saveLearned stores the definitions that are listed for everybody.
func (c *connection) saveLearned() {
	c.mu.Lock()
	r := c.cached
	r.Server, r.Tools = identity(c.spec), definitions(c.tools.tools)
	c.cached = r
	c.mu.Unlock()
	if err := c.opts.saveRecord(c.name, r); err != nil {
		c.log.Warn("not cached", "error", err)
	}
}

func sameTools(a, b *toolList) bool { return slices.EqualFunc(a.tools, b.tools, sameTool) }

func sameTool(a, b tool.Info) bool { return a.Name == b.Name && sameJSON(a.Raw, b.Raw) }

// offers is all tools that anybody has: those for everybody, and those of owners; c.mu is
// held.
func (c *connection) offers() *toolList {
	if len(c.lists) == 0 {
		return c.tools
	}
	if c.offered != nil && c.offeredOf == c.tools {
		return c.offered
	}
	all := *c.tools
	all.tools = slices.Clone(c.tools.tools)
	known := map[string]bool{}
	for i := range all.tools {
		known[all.tools[i].Name] = true
	}
	for _, owner := range slices.Sorted(maps.Keys(c.lists)) {
		list := c.lists[owner]
		for i := range list.tools {
			if info := list.tools[i]; list != c.tools && !known[info.Name] {
				known[info.Name] = true
				all.tools = append(all.tools, info)
			}
		}
	}
	all.sort()
	c.offered, c.offeredOf = &all, c.tools
	if len(all.tools) == len(c.tools.tools) {
		c.offered = c.tools
	}
	return c.offered
}

// OwnTools says how the tools of one principal at an upstream differ from those that anybody
// has there, by the upstream's names. It is not changed.
type OwnTools struct {
	Lacks   map[string]bool       // those that only others have
	Defined map[string]*tool.Info // those that are defined otherwise
}

// ownTools is that of an owner.
func (c *connection) ownTools(owner string) OwnTools {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, list := c.offers(), c.listFor(owner)
	if all == list {
		return OwnTools{}
	}
	if c.ownOf != all {
		c.own, c.ownOf = map[*toolList]OwnTools{}, all
	}
	own, known := c.own[list]
	if !known {
		own = c.compare(list, all)
		c.own[list] = own
	}
	return own
}

// compare says how a list differs from all that is offered; c.mu is held.
func (c *connection) compare(list, all *toolList) OwnTools {
	own := OwnTools{map[string]bool{}, map[string]*tool.Info{}}
	for i := range all.tools {
		own.Lacks[all.tools[i].Name] = true
	}
	allowed := c.allowed(list.tools)
	for i := range allowed {
		info := &allowed[i] // the same as long as the list is
		delete(own.Lacks, info.Name)
		if offered, _ := all.find(info.Name); !sameTool(*info, offered) {
			own.Defined[info.Name] = info
		}
	}
	return own
}
