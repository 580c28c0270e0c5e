package server

import (
	"context"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/access/pin"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/overlay"
)

// upstreams ties the connection manager to those who use it. It remembers which
// upstreams the configuration wants and which were added while running, so that
// a change of the one leaves the other alone.
type upstreams struct {
	manager *upstream.Manager
	pins    *pin.Guard      // the manager's tools that are approved
	overlay *overlay.Source // those tools under the names and with the texts that the owner wants
	audit   func(ctx context.Context, action, subject string, detail []byte)
	catalog *catalog.Catalog
	bus     *event.Bus
	log     *slog.Logger
	address func() string // where our HTTP server is; empty: nowhere

	wants

	hooks  atomic.Pointer[script.Hooks]
	warned map[string][]string // what was said of each upstream's settings; u.mu guards it
}

func exposure(spec upstream.Spec) catalog.Exposure {
	if slices.Contains(spec.Expose, config.ExposeAll) {
		return catalog.Exposure{All: true, Prefixes: spec.Prefixes}
	}
	return catalog.Exposure{Names: spec.Expose, Prefixes: spec.Prefixes}
}

// Add connects an upstream at somebody's wish.
func (u *upstreams) Add(ctx context.Context, want builtin.Upstream) error {
	u.audit(ctx, "upstream.add", want.Namespace, []byte(want.URL))
	return u.connect(ctx, want.Namespace, upstreamstore.Server{
		URL: want.URL, Transport: want.Transport, Protocol: want.Protocol, Headers: want.Headers,
	})
}

// allowed asks the policy about an address a script wants.
func (u *upstreams) allowed(ctx context.Context, policy builtin.Policy, name, address string) error {
	target, err := url.Parse(address)
	if err != nil {
		return fault.New(fault.InvalidParams, "upstream %s: %q is not a URL", name, address)
	}
	return policy(ctx, target)
}

// List is every upstream, sorted by name, those that somebody removed while the
// configuration has them among them.
func (u *upstreams) List() []builtin.UpstreamStatus {
	list := []builtin.UpstreamStatus{}
	for _, s := range u.manager.List() {
		if !isPrivateNamespace(s.Name) {
			list = append(list, u.status(s))
		}
	}
	list = append(list, u.absent()...)
	slices.SortStableFunc(list, func(a, b builtin.UpstreamStatus) int { return strings.Compare(a.Namespace, b.Namespace) })
	return list
}

// Status is one upstream.
func (u *upstreams) Status(name string) (builtin.UpstreamStatus, bool) {
	if s, ok := u.manager.Status(name); ok {
		return u.status(s), true
	}
	for _, s := range u.absent() {
		if s.Namespace == name {
			return s, true
		}
	}
	return builtin.UpstreamStatus{}, false
}

func (u *upstreams) status(s upstream.Status) builtin.UpstreamStatus {
	status := builtin.UpstreamStatus{
		Namespace: s.Name, Endpoint: s.Target, Transport: s.Transport, Protocol: s.Revision,
		State: string(s.State), Tools: s.Tools, Stale: s.Stale,
		Error: s.LastError, Hint: s.Hint, Login: u.loginAt(s), Attempt: s.Attempt, NextTry: s.NextTry,
		Warnings: u.warnings(context.Background(), s), // from memory
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tellOrigin(&status)
	return status
}

// tellOrigin says where an upstream comes from. u.mu is held.
func (u *upstreams) tellOrigin(s *builtin.UpstreamStatus) {
	s.Origin, _ = u.origin(s.Namespace)
	s.Fixed = s.Origin == originConfig
	s.ConfiguredAt = u.places[s.Namespace]
	if wish := u.wishes[s.Namespace]; wish != nil {
		s.By, s.Changed = wish.By, wish.Changed
	}
}

// What is shown of an upstream that is not there though somebody wants it.
const (
	stateRemoved    = "removed"    // the configuration, and a person does not
	stateUnreadable = "unreadable" // a person, and it is kept under another key
)

// absent are the upstreams that somebody wants and that are not there.
func (u *upstreams) absent() (list []builtin.UpstreamStatus) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for name, wish := range u.wishes {
		origin, removed := u.origin(name)
		s := builtin.UpstreamStatus{Namespace: name}
		switch {
		case removed && origin != "":
			spec := u.configured[name]
			if origin == originStartup {
				spec = u.startup[name]
			}
			s.Endpoint, s.State = spec.Target(), stateRemoved
			s.Hint = "removed by " + wish.By + "; `luanette upstream restore " + name + "` brings it back"
		case wish.Err != nil && origin == originAdded:
			s.State, s.Error, s.Hint = stateUnreadable, wish.Err.Error(), fault.HintOf(wish.Err)
		default:
			continue
		}
		u.tellOrigin(&s)
		list = append(list, s)
	}
	return list
}

// Await returns when the upstream has come to rest: connected, asleep, in need
// of credentials, or gone.
func (u *upstreams) Await(ctx context.Context, name string) {
	u.until(ctx, name, func(s upstream.Status) bool {
		return s.State == upstream.StateConnected || s.State == upstream.StateNeedsAuth || s.State == upstream.StateAsleep
	})
}

// tried returns when the upstream was reached, or an attempt to do so has failed.
func (u *upstreams) tried(ctx context.Context, name string) {
	u.until(ctx, name, func(s upstream.Status) bool { return s.State != upstream.StateConnecting })
}

// allTried returns when every upstream was, or patience is over.
func (u *upstreams) allTried(ctx context.Context, patience time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, name := range u.Namespaces() {
		u.tried(ctx, name)
	}
}

func (u *upstreams) until(ctx context.Context, name string, done func(upstream.Status) bool) {
	u.manager.Await(ctx, u.bus, name, done)
}

// loginAt is the address where a person can log in to an upstream that requires it.
func (u *upstreams) loginAt(s upstream.Status) string {
	base := ""
	if u.address != nil {
		base = u.address()
	}
	if s.State != upstream.StateNeedsAuth || base == "" || len(s.Desired.Addresses()) == 0 {
		return ""
	}
	return base + "/api/v1/upstreams/" + s.Name + "/login"
}

// Refresh fetches the upstream's list anew.
func (u *upstreams) Refresh(ctx context.Context, name string) ([]tool.Info, error) {
	if err := u.manager.Refresh(ctx, name); err != nil {
		return nil, err
	}
	u.catalog.Refresh(ctx)
	tools, ok := u.catalog.In(ctx, name)
	if !ok {
		return nil, fault.New(fault.NotFound, "no upstream %q", name)
	}
	return tools, nil
}

// Peer is one upstream seen whole, for the hub.
func (u *upstreams) Peer(name string) (hub.Peer, bool) {
	relayed, ok := u.manager.Peer(name)
	if !ok || isPrivateNamespace(name) {
		return nil, false // not a typed nil
	}
	return peer{relayed, name, u}, true
}

// Has tells whether there is such an upstream, for the hub.
func (u *upstreams) Has(name string) bool { return u.manager.Has(name) && !isPrivateNamespace(name) }

// Namespaces are the names of all upstreams but those that belong to somebody.
func (u *upstreams) Namespaces() []string {
	return slices.DeleteFunc(u.manager.Namespaces(), isPrivateNamespace)
}

// follow keeps the catalog up to date with the upstreams until ctx ends.
func (u *upstreams) follow(ctx context.Context) {
	sub := u.bus.Subscribe(event.Options{
		Types: []string{"upstream.connected", "upstream.tools_refreshed", "upstream.removed"}, Mode: event.Latest,
	})
	defer sub.Close()
	u.catalog.Refresh(ctx) // some may have connected before anybody listened
	u.warn(ctx)
	for e := range sub.All(ctx) {
		u.catalog.Refresh(ctx)
		u.warn(ctx)
		if connected, ok := e.Data.(upstream.Connected); ok {
			u.catalog.ResetBreaker(connected.Upstream)
		}
	}
}

var (
	_ builtin.Upstreams = (*upstreams)(nil)
	_ hub.Upstreams     = (*upstreams)(nil)
)
