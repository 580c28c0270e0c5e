package upstreamset

import (
	"cmp"
	"context"
	"maps"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
)

// Server is an upstream to connect to: over the network, never a command.
type Server struct {
	Namespace string
	URL       string
	Transport string // "", "http" or "sse"
	Protocol  string // "", "legacy" or "modern"
	Headers   map[string]string
}

// over returns the stored settings of the server with this address. At the same origin the
// other settings stay.
func (want Server) over(before upstreamstore.Server) upstreamstore.Server {
	if !upstreamstore.SameOrigin(before.URL, want.URL) {
		before = upstreamstore.Server{}
	}
	before.URL, before.Transport, before.Protocol, before.Headers = want.URL, want.Transport, want.Protocol, want.Headers
	return before
}

// Add adds an upstream for a user, on all nodes, or changes its address if a user added
// it before.
func (u *Set) Add(ctx context.Context, want Server) error {
	name := want.Namespace
	server := want.over(upstreamstore.Server{})
	u.Audit(ctx, "upstream.add", name, []byte(want.URL))
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
		return u.update(ctx, name, unremoved) // another node may have removed it just now
	}
	return u.update(ctx, name, func(now *upstreamstore.Entry) (*upstreamstore.Entry, error) {
		next := server
		if now != nil && !now.Removed {
			next = want.over(now.Server)
		}
		return &upstreamstore.Entry{Server: next}, nil
	})
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
		return &upstreamstore.Entry{Server: server, Removed: now.Disabled()}, err
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
	case OriginAdded:
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

// Remove removes an upstream on all nodes. One of the configuration or of startup.lua
// stays listed as removed.
func (u *Set) Remove(ctx context.Context, name string) (removed bool, err error) {
	if IsPrivate(name) {
		return u.removePrivate(name)
	}
	if u.local(name) != nil {
		return false, fault.New(fault.Conflict, "%s runs in this process", name).
			WithHint("disable it in luanette.toml, or add an upstream of that name, which replaces it")
	}
	u.Audit(ctx, "upstream.remove", name, nil)
	u.mu.Lock()
	_, configured := u.configured[name]
	_, startup := u.startup[name]
	u.mu.Unlock()
	var last upstreamstore.Server
	err = u.update(ctx, name, func(now *upstreamstore.Entry) (*upstreamstore.Entry, error) {
		switch {
		case configured || startup:
			removed = now == nil || !now.Removed
			return &upstreamstore.Entry{Removed: true}, nil
		case now == nil || now.Removed && now.Server.URL == "":
			removed = false
			return now, nil
		default:
			removed, last = true, now.Server
			return nil, nil
		}
	})
	if err == nil && last.URL != "" {
		u.rememberRemoved(name, last)
	}
	return removed, err
}

// maxUndo is how many removed servers can be brought back.
const maxUndo = 100

// rememberRemoved keeps the settings of a removed server, so that it can be restored as
// long as this process runs.
func (u *Set) rememberRemoved(name string, server upstreamstore.Server) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.undo) >= maxUndo {
		clear(u.undo)
	}
	u.undo[name] = server
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
		return &upstreamstore.Entry{Removed: true, Server: now.Server}, nil
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
			return &upstreamstore.Entry{Server: removed}, nil
		case now == nil || !now.Removed:
			return nil, fault.New(fault.Conflict, "upstream %q was not removed", name).WithHint("`luanette upstream list` shows the state of each")
		case now.Server.URL != "":
			return &upstreamstore.Entry{Server: now.Server}, nil
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

func takenFault(name string) error {
	return fault.New(fault.Conflict, "there is an upstream %s already", name).WithHint("choose another name, or edit that one")
}
