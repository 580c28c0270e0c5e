package upstreamset

import (
	"context"
	"maps"
	"slices"

	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// Where an upstream comes from.
const (
	originConfig  = "config"
	originStartup = "startup"
	OriginAdded   = "added" // while the server runs
)

// origin tells where an upstream comes from, and whether a user removed it. u.mu is
// held.
func (u *Set) origin(name string) (origin string, removed bool) {
	entry := u.entries[name]
	removed = entry != nil && entry.Removed
	if _, ok := u.configured[name]; ok {
		return originConfig, removed
	}
	if entry != nil && (!removed || entry.Server.URL != "") {
		return OriginAdded, removed
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
		Expose: s.Expose, AllowedTools: s.AllowedTools, DisabledTools: s.DisabledTools, ReadOnly: s.ReadOnly, Timeout: s.Timeout, Guarded: s.Guarded,
	}
}

func exposure(spec upstream.Spec) catalog.Exposure {
	if slices.Contains(spec.Expose, upstream.ExposeAll) {
		return catalog.Exposure{All: true, Prefixes: spec.Prefixes}
	}
	return catalog.Exposure{Names: spec.Expose, Prefixes: spec.Prefixes}
}

// apply makes a change, and then connects and disconnects upstreams accordingly.
func (u *Set) apply(change func()) error {
	u.changing.Lock()
	defer u.changing.Unlock()
	return u.applyLocked(change)
}

// applyLocked is apply for callers that hold u.changing.
func (u *Set) applyLocked(change func()) error {
	u.mu.Lock()
	change()
	desired := u.desired()
	u.mu.Unlock()
	if err := u.Manager.Set(slices.Collect(maps.Values(desired))); err != nil {
		return err
	}
	exposed := map[string]catalog.Exposure{}
	for name, spec := range desired {
		if IsPrivate(name) {
			continue
		}
		exposed[name] = exposure(spec)
		u.Catalog.Expose(name, exposed[name])
	}
	for name := range u.exposed {
		if _, still := exposed[name]; !still {
			u.Catalog.Expose(name, catalog.Exposure{})
		}
	}
	u.exposed = exposed
	u.setRules()
	return nil
}

// read returns the stored entries by name, and their stamp.
func (u *Set) read(ctx context.Context) (map[string]*upstreamstore.Entry, upstreamstore.Stamp, error) {
	all, err := u.Store.All(ctx)
	if err != nil {
		return nil, upstreamstore.Stamp{}, err
	}
	entries := map[string]*upstreamstore.Entry{}
	for _, entry := range all {
		entries[entry.Name] = entry
		if entry.Err != nil {
			u.Log.WarnContext(ctx, "an upstream that was added cannot be read", "upstream", entry.Name, "error", entry.Err)
		}
	}
	return entries, upstreamstore.StampOf(all), nil
}

// Reload reads the stored entries again and applies them.
func (u *Set) Reload(ctx context.Context) error {
	u.changing.Lock()
	defer u.changing.Unlock()
	return u.reloadLocked(ctx)
}

// Poll is Reload if the stored entries are not those that were read last.
func (u *Set) Poll(ctx context.Context) error {
	u.changing.Lock()
	defer u.changing.Unlock()
	stamp, err := u.Store.Stamp(ctx)
	if err != nil || stamp == u.applied {
		return err
	}
	return u.reloadLocked(ctx)
}

func (u *Set) reloadLocked(ctx context.Context) error {
	entries, stamp, err := u.read(ctx)
	if err != nil {
		return err
	}
	err = u.applyLocked(func() { u.entries = entries })
	if err == nil {
		u.applied = stamp
	}
	u.Catalog.Refresh(ctx)
	return err
}
