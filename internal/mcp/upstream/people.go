package upstream

import (
	"context"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
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
	own.phase.retryLogin()
	return own, nil
}

// connectPerson starts the connection of an owner, unless another request was faster.
func (m *Manager) connectPerson(ctx context.Context, lister *connection, owner string) (*connection, error) {
	who := Person{ID: owner}
	if m.opts.Person != nil {
		var err error
		if who, err = m.opts.Person(ctx, owner); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	name := lister.name
	if m.closed || m.running[name] != lister {
		return nil, fault.Wrap(fault.Unavailable, errRemoved, "connect to %s", name)
	}
	if own := m.people[name][owner]; own != nil {
		return own, nil
	}
	spec := lister.spec.Load()
	if len(m.people[name]) >= spec.people() && !m.endUnused(name) {
		return nil, fault.New(fault.Limit, "upstream %s: %d people use it, which is its limit", name, spec.people()).
			WithHint("try again when somebody has finished, or raise people of upstream %s", name)
	}
	return m.startPerson(spec.of(owner, who), lister), nil
}

// of is the spec of the connection of an owner.
func (s Spec) of(owner string, who Person) Spec {
	s.Owner, s.Person = owner, who
	return s
}

// startPerson starts the connection of an owner; m.mu is held.
func (m *Manager) startPerson(spec Spec, lister *connection) *connection {
	m.generation++
	c := newConnection(m.shared, spec, m.generation)
	c.lister, c.end = lister, m.endPerson
	c.known.learnFrom(lister.known)
	c.phase.use()
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
	m.stopPerson(c, errOwnerEnded)
}

// stopPerson ends the connection of an owner; m.mu is held.
func (m *Manager) stopPerson(c *connection, why error) {
	if m.people[c.name][c.owner] != c {
		return
	}
	delete(m.people[c.name], c.owner)
	if len(m.people[c.name]) == 0 {
		delete(m.people, c.name)
	}
	m.finish(c, why)
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
		m.stopPerson(oldest, errOwnerEnded)
	}
	return oldest != nil
}

// stopPeople ends the connections of all owners to an upstream; m.mu is held.
func (m *Manager) stopPeople(name string, why error) (ended []*connection) {
	for _, c := range m.people[name] {
		ended = append(ended, c)
		m.stopPerson(c, why)
	}
	return ended
}

// restartPeople ends the connections of all owners, because the spec has changed. Those who
// wait for changes of resources get a new one, others when they need it. m.mu is held.
func (m *Manager) restartPeople(lister *connection) {
	for _, old := range m.stopPeople(lister.name, errReplaced) {
		if spec := old.spec.Load(); lister.personal && old.restored.hasSubscribers() {
			m.startPerson(lister.spec.Load().of(spec.Owner, spec.Person), lister).inheritFrom(old)
		}
	}
}

// adjustPeople gives the connections of all owners settings that need no new connection;
// m.mu is held.
func (m *Manager) adjustPeople(spec Spec) {
	for _, c := range m.people[spec.Name] {
		old := c.spec.Load()
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
			c.known.forgetOwners(gone)
		}
	}
}

// RenewPerson ends the connections of an owner that use values of theirs, because a value
// has changed. The next call connects anew.
func (m *Manager) RenewPerson(owner string) {
	for _, c := range m.everyConnection() {
		if c.owner == owner && owner != "" && c.spec.Load().needsPerson() {
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
	lister, err := m.connection(name)
	if err != nil || !lister.personal {
		return st, false
	}
	owner := principal.Of(ctx).LoginOwner()
	m.mu.Lock()
	own := m.people[name][owner]
	m.mu.Unlock()
	if own != nil {
		return own.status(), true
	}
	st = lister.status()
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
		if own := c.known.ownTools(owner); len(own.Lacks)+len(own.Defined) > 0 {
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
	return connectAttempt{connection: c, spec: spec, hooks: c.hooks()}, err
}

// inUse reports whether ending the connection would be noticed, and when it was last used.
func (c *connection) inUse() (used bool, last time.Time) {
	s := c.phase.session.Load()
	used = c.phase.hasWaiters() || c.stats.now().InFlight > 0 || c.restored.hasSubscribers() || s != nil && s.activeCalls() > 0
	return used, time.Unix(0, c.phase.lastUsed.Load())
}
