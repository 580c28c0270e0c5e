package upstreamset

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/overlay"
)

// Where an upstream comes from.
const (
	originConfig  = "config"
	originStartup = "startup"
	originAdded   = "added"
)

// origin tells where an upstream comes from, and whether a user removed it. u.mu is
// held.
func (u *Set) origin(name string) (origin string, removed bool) {
	entry := u.entries[name]
	removed = entry != nil && entry.Removed
	if _, ok := u.configured[name]; ok {
		return originConfig, removed
	}
	if entry != nil && !removed {
		return originAdded, false
	}
	if _, ok := u.startup[name]; ok {
		return originStartup, removed
	}
	return "", false
}

// desired returns all upstreams that should be connected. The configuration overrides
// what users added, and that overrides startup.lua; what a user removed is left out.
// u.mu is held.
func (u *Set) desired() map[string]upstream.Spec {
	all := maps.Clone(u.startup)
	if all == nil {
		all = map[string]upstream.Spec{}
	}
	for name, entry := range u.entries {
		if spec := specOf(name, entry.Server); !entry.Removed && entry.Err == nil && spec.Validate() == nil {
			all[name] = spec
		}
	}
	maps.Copy(all, u.configured)
	maps.DeleteFunc(all, func(name string, _ upstream.Spec) bool {
		entry := u.entries[name]
		return u.dropped[name] || entry != nil && entry.Removed
	})
	maps.Copy(all, u.private)
	return all
}

// specOf is the connection manager's specification of a stored server.
func specOf(name string, s upstreamstore.Server) upstream.Spec {
	return upstream.Spec{
		Name: name, URL: s.URL, Transport: s.Transport, Protocol: s.Protocol, Headers: s.Headers,
		Expose: s.Expose, AllowedTools: s.AllowedTools, DisabledTools: s.DisabledTools, ReadOnly: s.ReadOnly, Timeout: s.Timeout,
	}
}

// align applies change and then connects and disconnects upstreams accordingly.
func (u *Set) align(change func()) error {
	u.changing.Lock()
	defer u.changing.Unlock()
	return u.aligned(change)
}

// aligned is align for callers that hold u.changing.
func (u *Set) aligned(change func()) error {
	u.mu.Lock()
	change()
	desired := u.desired()
	u.mu.Unlock()
	if err := u.manager.Set(slices.Collect(maps.Values(desired))); err != nil {
		return err
	}
	exposed := map[string]catalog.Exposure{}
	for name, spec := range desired {
		if IsPrivate(name) {
			continue
		}
		exposed[name] = exposure(spec)
		u.catalog.Expose(name, exposed[name])
	}
	for name := range u.exposed {
		if _, still := exposed[name]; !still {
			u.catalog.Expose(name, catalog.Exposure{})
		}
	}
	u.exposed = exposed
	return nil
}

// Configure sets the upstreams of the configuration. Upstreams that did not change stay
// connected.
func (u *Set) Configure(specs []upstream.Spec, places map[string]string, rules map[string]overlay.Rule) error {
	configured := map[string]upstream.Spec{}
	for _, spec := range specs {
		configured[spec.Name] = spec
	}
	err := u.align(func() { u.configured, u.places, u.dropped = configured, places, nil })
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for name := range u.rules {
		u.Overlay.SetRule(name, u.scripted[name])
	}
	for name, rule := range rules {
		u.Overlay.SetRule(name, rule.Over(u.scripted[name]))
	}
	u.rules = rules
	return nil
}

// Configured returns the upstreams and rules of the configuration.
func (u *Set) Configured() (map[string]upstream.Spec, map[string]overlay.Rule) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.configured), maps.Clone(u.rules)
}

// Edited returns the names of specs that are new or changed.
func (u *Set) Edited(specs []upstream.Spec) (names []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, spec := range specs {
		if before, ok := u.configured[spec.Name]; !ok || !before.Equal(spec) {
			names = append(names, spec.Name)
		}
	}
	return names
}

// Removed are the upstreams of the configuration that a user removed.
func (u *Set) Removed() map[string]bool {
	names := map[string]bool{}
	u.mu.Lock()
	defer u.mu.Unlock()
	for name := range u.configured {
		if entry := u.entries[name]; entry != nil && entry.Removed {
			names[name] = true
		}
	}
	return names
}

// Unremove brings back upstreams that a user removed, because the configuration asks for
// them again.
func (u *Set) Unremove(ctx context.Context, names []string) error {
	for _, name := range names {
		u.mu.Lock()
		entry := u.entries[name]
		u.mu.Unlock()
		if entry == nil || !entry.Removed {
			continue
		}
		if err := u.update(ctx, name, func(now *upstreamstore.Entry) (*upstreamstore.Entry, error) {
			if now != nil && now.Removed {
				return nil, nil
			}
			return now, nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// update changes the stored entry of an upstream, on all nodes.
func (u *Set) update(ctx context.Context, name string, next func(now *upstreamstore.Entry) (*upstreamstore.Entry, error)) error {
	if u.Persistent {
		if err := u.Store.Change(ctx, name, callerName(ctx), next); err != nil {
			return err
		}
		return u.Reload(context.WithoutCancel(ctx))
	}
	u.changing.Lock()
	defer u.changing.Unlock()
	u.mu.Lock()
	now := u.entries[name]
	u.mu.Unlock()
	entry, err := next(now)
	if err != nil {
		return err
	}
	return u.aligned(func() {
		entries := maps.Clone(u.entries)
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

// read returns the stored entries by name.
func (u *Set) read(ctx context.Context) (map[string]*upstreamstore.Entry, error) {
	all, err := u.Store.All(ctx)
	if err != nil {
		return nil, err
	}
	entries := map[string]*upstreamstore.Entry{}
	for _, entry := range all {
		entries[entry.Name] = entry
		if entry.Err != nil {
			u.Log.WarnContext(ctx, "an upstream that was added cannot be read", "upstream", entry.Name, "error", entry.Err)
		}
	}
	return entries, nil
}

// Reload reads the stored entries again and applies them.
func (u *Set) Reload(ctx context.Context) error {
	u.changing.Lock()
	defer u.changing.Unlock()
	entries, err := u.read(ctx)
	if err != nil {
		return err
	}
	err = u.aligned(func() { u.entries = entries })
	u.catalog.Refresh(ctx)
	return err
}

// Connect adds a server for a user, or changes its address if it was added before.
func (u *Set) Connect(ctx context.Context, name string, server upstreamstore.Server) error {
	if err := checkAdded(specOf(name, server)); err != nil {
		return err
	}
	u.mu.Lock()
	fixed, taken := u.configured[name]
	place := u.places[name]
	u.mu.Unlock()
	if taken {
		if fixed.URL != server.URL {
			return configuredFault(name, place).WithHint("choose another name")
		}
		return u.Unremove(ctx, []string{name})
	}
	return u.update(ctx, name, func(now *upstreamstore.Entry) (*upstreamstore.Entry, error) {
		next := server
		if now != nil && !now.Removed && upstreamstore.SameOrigin(now.Server.URL, server.URL) {
			next = now.Server // its other settings stay
			next.URL, next.Transport, next.Protocol, next.Headers = server.URL, server.Transport, server.Protocol, server.Headers
		}
		return &upstreamstore.Entry{Server: next}, nil
	})
}

// checkAdded says what is wrong with a server that is to be added.
func checkAdded(spec upstream.Spec) error {
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

// Remove removes an upstream on all nodes. One of the configuration or of startup.lua
// stays listed as removed.
func (u *Set) Remove(ctx context.Context, name string) (removed bool, err error) {
	if IsPrivate(name) {
		return u.removePrivate(name)
	}
	u.Audit(ctx, "upstream.remove", name, nil)
	u.mu.Lock()
	_, configured := u.configured[name]
	_, startup := u.startup[name]
	u.mu.Unlock()
	err = u.update(ctx, name, func(now *upstreamstore.Entry) (*upstreamstore.Entry, error) {
		switch {
		case configured || startup:
			removed = now == nil || !now.Removed
			return &upstreamstore.Entry{Removed: true}, nil
		case now == nil || now.Removed:
			removed = false
			return now, nil
		default:
			removed = true
			return nil, nil
		}
	})
	return removed, err
}

// Restore brings back an upstream of the configuration that was removed.
func (u *Set) Restore(ctx context.Context, name string) error {
	u.Audit(ctx, "upstream.restore", name, nil)
	return u.update(ctx, name, func(now *upstreamstore.Entry) (*upstreamstore.Entry, error) {
		if now == nil || !now.Removed {
			return nil, fault.New(fault.Conflict, "upstream %q was not removed", name).WithHint("`luanette upstream list` shows the state of each")
		}
		return nil, nil
	})
}

// AddPrivate connects a server of one user's chats.
func (u *Set) AddPrivate(spec upstream.Spec) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	return u.align(func() {
		if u.private == nil {
			u.private = map[string]upstream.Spec{}
		}
		u.private[spec.Name] = spec
	})
}

func (u *Set) removePrivate(name string) (removed bool, err error) {
	err = u.align(func() {
		_, removed = u.private[name]
		delete(u.private, name)
	})
	return removed, err
}

// AddLocal adds a server on this node only, for startup.lua.
func (u *Set) AddLocal(spec upstream.Spec) error {
	if err := checkAdded(spec); err != nil {
		return err
	}
	u.mu.Lock()
	fixed, taken := u.configured[spec.Name]
	place := u.places[spec.Name]
	u.mu.Unlock()
	if taken && (fixed.URL != spec.URL || fixed.Command != spec.Command) {
		return configuredFault(spec.Name, place).WithHint("choose another name")
	}
	return u.align(func() {
		if u.startup == nil {
			u.startup = map[string]upstream.Spec{}
		}
		if !taken {
			u.startup[spec.Name] = spec
		}
		delete(u.dropped, spec.Name)
	})
}

// RemoveLocal removes a server on this node only.
func (u *Set) RemoveLocal(name string) (removed bool, err error) {
	err = u.align(func() {
		_, removed = u.desired()[name]
		delete(u.startup, name)
		if _, still := u.desired()[name]; still {
			if u.dropped == nil {
				u.dropped = map[string]bool{}
			}
			u.dropped[name] = true
		}
	})
	return removed, err
}

// AddServer stores a server that did not exist before.
func (u *Set) AddServer(ctx context.Context, name string, server upstreamstore.Server) error {
	if err := checkAdded(specOf(name, server)); err != nil {
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
		return &upstreamstore.Entry{Server: server}, nil
	})
}

func takenFault(name string) error {
	return fault.New(fault.Conflict, "there is an upstream %s already", name).WithHint("choose another name, or edit that one")
}

// EditServer changes a server that was added while the server runs.
func (u *Set) EditServer(ctx context.Context, name string, change func(upstreamstore.Server) (upstreamstore.Server, error)) error {
	checked := func(s upstreamstore.Server) (upstreamstore.Server, error) {
		s, err := change(s)
		if err == nil {
			err = checkAdded(specOf(name, s))
		}
		return s, err
	}
	base, err := u.Editable(name)
	if err != nil {
		return err
	}
	if _, err := checked(base); err != nil {
		return err
	}
	u.Audit(ctx, "upstream.edit", name, nil)
	return u.update(ctx, name, func(now *upstreamstore.Entry) (*upstreamstore.Entry, error) {
		before := base
		if now != nil && !now.Removed {
			before = now.Server
		}
		server, err := checked(before)
		return &upstreamstore.Entry{Server: server}, err
	})
}

// Editable returns the settings of a server that can be changed, or why they cannot.
func (u *Set) Editable(name string) (upstreamstore.Server, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	origin, _ := u.origin(name)
	switch origin {
	case originConfig:
		return upstreamstore.Server{}, configuredFault(name, u.places[name]).
			WithHint("change it there: the file is watched, and only what changed reconnects")
	case originAdded:
		return u.entries[name].Server, u.entries[name].Err
	case originStartup:
		if spec := u.startup[name]; spec.URL != "" {
			return upstreamstore.Server{URL: spec.URL}, nil
		}
		return upstreamstore.Server{}, fault.New(fault.Conflict, "upstream %s is a program that startup.lua starts", name).WithHint("change it there, and restart")
	default:
		return upstreamstore.Server{}, fault.New(fault.NotFound, "no upstream %q", name).WithHint("`luanette upstream list` lists them")
	}
}
