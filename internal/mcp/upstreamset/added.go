package upstreamset

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
	"github.com/luanette/luanette/internal/tools/overlay"
)

// over returns the stored settings of a server with the address of want. At the same origin
// the other settings stay.
func over(want, before upstream.Settings) upstream.Settings {
	if !upstreamstore.SameOrigin(before.URL, want.URL) {
		before = upstream.Settings{}
	}
	before.URL, before.Transport, before.Protocol, before.Headers = want.URL, want.Transport, want.Protocol, want.Headers
	return before
}

// Add adds an upstream for a user, on all nodes, or changes its address if a user added
// it before.
func (u *Set) Add(ctx context.Context, name string, want upstream.Settings) error {
	u.Audit(ctx, "upstream.add", name, []byte(want.URL))
	if err := checkAdded(name, want); err != nil {
		return err
	}
	u.mu.Lock()
	fixed, taken := u.configured[name]
	place := u.places[name]
	u.mu.Unlock()
	if taken {
		if fixed.URL != want.URL {
			return configuredFault(name, place).WithHint("choose another name")
		}
		return u.update(ctx, name, unremoved) // another node may have removed it just now
	}
	return u.update(ctx, name, func(now *upstreamstore.Entry) (*upstreamstore.Entry, error) {
		next := upstreamstore.Entry{Settings: want}
		if now != nil && !now.Removed {
			next.Settings, next.Guarded = over(want, now.Settings), now.Guarded && upstreamstore.SameOrigin(now.Settings.URL, want.URL)
		}
		return &next, nil
	})
}

// AddServer stores a server that did not exist before.
func (u *Set) AddServer(ctx context.Context, name string, server upstream.Settings) error {
	if err := checkAdded(name, server); err != nil {
		return err
	}
	u.mu.Lock()
	origin, _ := u.origin(name)
	place := u.places[name]
	u.mu.Unlock()
	switch origin {
	case "":
	case originConfig:
		return configuredFault(name, place).WithHint("choose another name, or change it there")
	default:
		return takenFault(name)
	}
	u.Audit(ctx, "upstream.add", name, []byte(server.URL))
	return u.update(ctx, name, func(now *upstreamstore.Entry) (*upstreamstore.Entry, error) {
		if now != nil && !now.Removed {
			return nil, takenFault(name)
		}
		return &upstreamstore.Entry{Settings: server}, nil
	})
}

// EditServer changes a server that was added while the server runs.
func (u *Set) EditServer(ctx context.Context, name string, change func(upstream.Settings) (upstream.Settings, error)) error {
	checked := func(s upstream.Settings) (upstream.Settings, error) {
		s, err := change(s)
		if err == nil {
			err = checkAdded(name, s)
		}
		return s, err
	}
	base, err := u.Editable(name)
	if err != nil {
		return err
	}
	if _, err := checked(base.Settings); err != nil {
		return err
	}
	u.Audit(ctx, "upstream.edit", name, nil)
	return u.update(ctx, name, func(now *upstreamstore.Entry) (*upstreamstore.Entry, error) {
		next := upstreamstore.Entry{Settings: base.Settings, Guarded: base.Guarded, Removed: now.Disabled()}
		if now != nil && !now.Removed {
			next.Settings, next.Guarded = now.Settings, now.Guarded
		}
		next.Settings, err = checked(next.Settings)
		return &next, err
	})
}

// Editable returns the settings of a server that can be changed, or why they cannot.
func (u *Set) Editable(name string) (upstream.Spec, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	origin, _ := u.origin(name)
	switch origin {
	case originConfig:
		return upstream.Spec{}, configuredFault(name, u.places[name]).
			WithHint("change it there: the file is watched, and only what changed reconnects")
	case OriginAdded:
		return specOf(u.entries[name]), u.entries[name].Err
	case originStartup:
		if spec := u.startup[name]; spec.URL != "" {
			return upstream.Spec{Name: name, Settings: upstream.Settings{URL: spec.URL}}, nil
		}
		return upstream.Spec{}, fault.New(fault.Conflict, "upstream %s is a program that startup.lua starts", name).WithHint("change it there, and restart")
	default:
		return upstream.Spec{}, fault.New(fault.NotFound, "no upstream %q", name).WithHint("`luanette upstream list` lists them")
	}
}

// Remove removes an upstream on all nodes. One of the configuration or of startup.lua
// stays listed as removed.
func (u *Set) Remove(ctx context.Context, name string) (removed bool, err error) {
	if u.local(name) != nil {
		return false, fault.New(fault.Conflict, "%s runs in this process", name).
			WithHint("disable it in luanette.toml, or add an upstream of that name, which replaces it")
	}
	u.Audit(ctx, "upstream.remove", name, nil)
	u.mu.Lock()
	_, configured := u.configured[name]
	_, startup := u.startup[name]
	u.mu.Unlock()
	var last upstreamstore.Entry
	err = u.update(ctx, name, func(now *upstreamstore.Entry) (*upstreamstore.Entry, error) {
		switch {
		case configured || startup:
			removed = now == nil || !now.Removed
			return &upstreamstore.Entry{Removed: true}, nil
		case now == nil || now.Removed && now.Settings.URL == "":
			removed = false
			return now, nil
		default:
			removed, last = true, *now
			return nil, nil
		}
	})
	if err == nil && last.Settings.URL != "" {
		u.rememberRemoved(last)
	}
	return removed, err
}

// maxUndo is how many removed servers can be brought back.
const maxUndo = 100

// rememberRemoved keeps the entry of a removed server, so that it can be restored as long as
// this process runs.
func (u *Set) rememberRemoved(entry upstreamstore.Entry) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.undo) >= maxUndo {
		clear(u.undo)
	}
	entry.Removed = false
	u.undo[entry.Name] = entry
}

// Disable disconnects an upstream on all nodes. It stays listed, and Restore enables it
// again.
func (u *Set) Disable(ctx context.Context, name string) error {
	u.mu.Lock()
	origin, _ := u.origin(name)
	u.mu.Unlock()
	if origin != OriginAdded {
		_, err := u.Remove(ctx, name)
		return err
	}
	u.Audit(ctx, "upstream.disable", name, nil)
	return u.update(ctx, name, func(now *upstreamstore.Entry) (*upstreamstore.Entry, error) {
		if now == nil {
			return nil, fault.New(fault.NotFound, "no upstream %q", name).WithHint("`luanette upstream list` lists them")
		}
		next := *now
		next.Removed = true
		return &next, nil
	})
}

// Restore brings back an upstream that was disabled, one of the configuration that was
// removed, or one that was removed from here while this process runs.
func (u *Set) Restore(ctx context.Context, name string) error {
	u.Audit(ctx, "upstream.restore", name, nil)
	u.mu.Lock()
	removed, there := u.undo[name]
	u.mu.Unlock()
	return u.update(ctx, name, func(now *upstreamstore.Entry) (*upstreamstore.Entry, error) {
		switch {
		case now == nil && there:
			return &removed, nil
		case now == nil || !now.Removed:
			return nil, fault.New(fault.Conflict, "upstream %q was not removed", name).WithHint("`luanette upstream list` shows the state of each")
		case now.Settings.URL != "":
			next := *now
			next.Removed = false
			return &next, nil
		}
		return nil, nil
	})
}

// update changes the stored entry of an upstream, on all nodes.
func (u *Set) update(ctx context.Context, name string, next func(now *upstreamstore.Entry) (*upstreamstore.Entry, error)) error {
	if !u.Persistent {
		return u.updateHere(ctx, name, func(now *upstreamstore.Entry, _ map[string]*upstreamstore.Entry) (*upstreamstore.Entry, error) {
			return next(now)
		})
	}
	if err := u.Store.Change(ctx, name, callerName(ctx), next); err != nil {
		return err
	}
	return u.Reload(context.WithoutCancel(ctx))
}

// updateHere changes the entry of an upstream of a set that stores nothing.
func (u *Set) updateHere(ctx context.Context, name string, next func(now *upstreamstore.Entry, all map[string]*upstreamstore.Entry) (*upstreamstore.Entry, error)) error {
	u.changing.Lock()
	defer u.changing.Unlock()
	u.mu.Lock()
	before := u.entries // never changed, but replaced
	u.mu.Unlock()
	entry, err := next(before[name], before)
	if err != nil {
		return err
	}
	return u.applyLocked(func() {
		entries := maps.Clone(before)
		delete(entries, name)
		if entry != nil {
			stored := *entry
			stored.Name, stored.By, stored.Changed = name, callerName(ctx), time.Now().UTC()
			entries[name] = &stored
		}
		u.entries = entries
	})
}

// callerName names the caller.
func callerName(ctx context.Context) string {
	who := principal.Of(ctx)
	return cmp.Or(who.Name, who.ID)
}

// checkAdded says what is wrong with a server that a user adds.
func checkAdded(name string, s upstream.Settings) error {
	return cmp.Or(s.CheckAdded(), overlay.Rule{Aliases: s.Aliases}.Validate(), checkSpec(upstream.Spec{Name: name, Settings: s}))
}

// checkSpec says what is wrong with a server, and with its name.
func checkSpec(spec upstream.Spec) error {
	if IsPrivate(spec.Name) {
		return fault.New(fault.InvalidParams, "names that begin with %s are reserved", privatePrefix).WithHint("choose another name")
	}
	return spec.Validate()
}

// configuredFault says that an upstream belongs to the configuration, and where.
func configuredFault(name, place string) *fault.Error {
	if place == "" {
		return fault.New(fault.Conflict, "upstream %s belongs to the configuration", name)
	}
	return fault.New(fault.Conflict, "upstream %s belongs to the configuration: %s", name, place)
}

func takenFault(name string) error {
	return fault.New(fault.Conflict, "there is an upstream %s already", name).WithHint("choose another name, or edit that one")
}

// AddLocal adds a server on this node only, for startup.lua. If a user removed one of that
// name, it is there again: startup.lua says with each start what there is.
func (u *Set) AddLocal(ctx context.Context, spec upstream.Spec) error {
	if err := checkSpec(spec); err != nil {
		return err
	}
	u.mu.Lock()
	fixed, taken := u.configured[spec.Name]
	place := u.places[spec.Name]
	entry := u.entries[spec.Name]
	u.mu.Unlock()
	if taken && (fixed.URL != spec.URL || fixed.Command != spec.Command) {
		return configuredFault(spec.Name, place).WithHint("choose another name")
	}
	err := u.apply(func() {
		if !taken {
			u.startup[spec.Name] = spec
		}
		delete(u.dropped, spec.Name)
	})
	if err != nil || taken || entry.Disabled() {
		return err
	}
	return u.Unremove(ctx, []string{spec.Name})
}

// RemoveLocal removes a server on this node only.
func (u *Set) RemoveLocal(name string) (removed bool, err error) {
	err = u.apply(func() {
		_, removed = u.desired()[name]
		delete(u.startup, name)
		if _, still := u.desired()[name]; still {
			u.dropped[name] = true
		}
	})
	return removed, err
}

// Orgs lets those who manage an organisation add, change and remove upstreams of its own:
// MCP servers over HTTP that are not in private networks. They reach no other upstream: not
// the server's, not those that the configuration gives to the organisation, and not those
// of other organisations.
type Orgs struct {
	Set *Set
	// Most is how many an organisation may have.
	Most func(org string) int
	// CheckURL decides which addresses an organisation may add. Callers check with it what
	// they pass to Add, Connect and Edit.
	CheckURL func(ctx context.Context, target *url.URL) error
}

// orgTransports are those of MCP over HTTP.
var orgTransports = []string{"", "auto", "http", "sse"}

var orgUpstreamName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

// List returns the upstreams that were added for an organisation.
func (o *Orgs) List(org string) []Status {
	return slices.DeleteFunc(o.Set.List(), func(s Status) bool {
		_, of := principal.SplitNamespace(s.Namespace)
		return of != org || s.Origin != OriginAdded
	})
}

// Find returns the namespace of an upstream that was added for an organisation.
func (o *Orgs) Find(org, name string) (string, error) {
	space := principal.InOrg(name, org)
	if !orgUpstreamName().MatchString(name) || !slices.ContainsFunc(o.List(org), func(s Status) bool { return s.Namespace == space }) {
		return "", fault.New(fault.NotFound, "the organisation %s has added no upstream %q", org, name).
			WithHint("upstreams of luanette.toml are changed by the operators of the server")
	}
	return space, nil
}

// Add stores an upstream that the organisation did not have before.
func (o *Orgs) Add(ctx context.Context, org, name string, server upstream.Settings) error {
	return o.change(ctx, org, name, "upstream.add", func(now *upstreamstore.Entry) (upstreamstore.Entry, error) {
		if now != nil {
			return upstreamstore.Entry{}, takenFault(name)
		}
		return upstreamstore.Entry{Settings: server}, nil
	})
}

// Connect adds an upstream, or changes the address of one that the organisation added before,
// and enables it.
func (o *Orgs) Connect(ctx context.Context, org, name string, want upstream.Settings) error {
	return o.change(ctx, org, name, "upstream.add", func(now *upstreamstore.Entry) (upstreamstore.Entry, error) {
		if now == nil {
			return upstreamstore.Entry{Settings: want}, nil
		}
		return upstreamstore.Entry{Settings: over(want, now.Settings)}, nil
	})
}

// Edit changes an upstream that the organisation added. One that is disabled stays so.
func (o *Orgs) Edit(ctx context.Context, org, name string, edit func(upstream.Settings) (upstream.Settings, error)) error {
	if _, err := o.Find(org, name); err != nil { //nolint:contextcheck // it only looks at memory
		return err
	}
	return o.change(ctx, org, name, "upstream.edit", func(now *upstreamstore.Entry) (upstreamstore.Entry, error) {
		if now == nil {
			return upstreamstore.Entry{}, fault.New(fault.NotFound, "the organisation %s has added no upstream %q", org, name).WithHint("it was removed just now")
		}
		server, err := edit(now.Settings)
		return upstreamstore.Entry{Settings: server, Removed: now.Removed}, err
	})
}

// change replaces the stored upstream of an organisation by the result of next, on all nodes.
// next gets nil if there is none.
func (o *Orgs) change(ctx context.Context, org, name, action string, next func(now *upstreamstore.Entry) (upstreamstore.Entry, error)) error {
	if err := o.checkName(org, name); err != nil {
		return err
	}
	space := principal.InOrg(name, org)
	var stored upstream.Settings
	err := o.update(ctx, space, "@"+org, func(now *upstreamstore.Entry, among []*upstreamstore.Entry) (*upstreamstore.Entry, error) {
		switch {
		case now == nil || now.Removed && !now.Disabled():
			now = nil
			if most := o.Most(org); o.count(among) >= most {
				return nil, fault.New(fault.Limit, "the organisation %s may add %d upstreams", org, most).
					WithHint("remove one; the operators of the server set orgs.%s.max_upstreams", org)
			}
		case now.Err != nil:
			return nil, now.Err
		case !now.Guarded:
			return nil, fault.New(fault.Denied, "the operators of the server added %s for %s", name, org).WithHint("they can change it; you can remove it")
		}
		entry, err := next(now)
		if err == nil {
			err = checkOrgServer(space, entry.Settings)
		}
		if err != nil {
			return nil, err
		}
		entry.Guarded = true
		stored = entry.Settings
		return &entry, nil
	})
	if err == nil {
		o.Set.Audit(ctx, action, space, []byte(stored.URL))
	}
	return err
}

// checkName refuses names that cannot be those of an organisation's upstream, and those of
// upstreams that were not added.
func (o *Orgs) checkName(org, name string) error {
	if err := principal.CheckOrg(org); err != nil {
		return err
	}
	if !orgUpstreamName().MatchString(name) {
		return fault.New(fault.InvalidParams, "namespace %q is not a valid name", name).
			WithHint("use a letter, then at most 63 letters, digits, _ or -, without the organisation")
	}
	u, space := o.Set, principal.InOrg(name, org)
	u.mu.Lock()
	defer u.mu.Unlock()
	switch origin, _ := u.origin(space); origin {
	case originConfig:
		return fault.New(fault.Conflict, "upstream %s belongs to the configuration", name).WithHint("choose another name")
	case originStartup:
		return takenFault(name)
	}
	return nil
}

// count counts the entries that are upstreams which were added.
func (o *Orgs) count(among []*upstreamstore.Entry) (n int) {
	o.Set.mu.Lock()
	defer o.Set.mu.Unlock()
	for _, entry := range among {
		if _, configured := o.Set.configured[entry.Name]; !configured && (!entry.Removed || entry.Disabled()) {
			n++
		}
	}
	return n
}

// checkOrgServer refuses what an organisation cannot add.
func checkOrgServer(space string, server upstream.Settings) error {
	if !slices.Contains(orgTransports, server.Transport) {
		return fault.New(fault.Denied, "an organisation adds MCP servers over HTTP, not %s", server.Transport).
			WithHint("the operators of the server can add it")
	}
	return checkAdded(space, server)
}

// update changes the stored entry of an upstream. next also gets the entries whose names have
// the same ending.
func (o *Orgs) update(ctx context.Context, space, ending string, next func(now *upstreamstore.Entry, among []*upstreamstore.Entry) (*upstreamstore.Entry, error)) error {
	u := o.Set
	if u.Persistent {
		if err := u.Store.ChangeAmong(ctx, space, callerName(ctx), ending, next); err != nil {
			return err
		}
		return u.Reload(context.WithoutCancel(ctx))
	}
	return u.updateHere(ctx, space, func(now *upstreamstore.Entry, all map[string]*upstreamstore.Entry) (*upstreamstore.Entry, error) {
		among := slices.DeleteFunc(slices.Collect(maps.Values(all)), func(e *upstreamstore.Entry) bool { return !strings.HasSuffix(e.Name, ending) })
		return next(now, among)
	})
}
