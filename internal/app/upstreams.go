package app

import (
	"context"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/arrange"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/catalog"
	"github.com/luanette/luanette/internal/event"
	"github.com/luanette/luanette/internal/fault"
	"github.com/luanette/luanette/internal/hub"
	"github.com/luanette/luanette/internal/script"
	"github.com/luanette/luanette/internal/tool"
	"github.com/luanette/luanette/internal/trust"
	"github.com/luanette/luanette/internal/upstream"
)

// upstreams ties the connection manager to those who use it. It remembers which
// upstreams the configuration wants and which were added while running, so that
// a change of the one leaves the other alone.
type upstreams struct {
	manager *upstream.Manager
	guard   *trust.Guard // between the manager and whoever uses its tools
	pass    catalog.Pass // what every call passes first
	did     func(ctx context.Context, action, subject string, detail []byte)
	// turnedAway is told of calls that are refused before they pass.
	turnedAway func(ctx context.Context, call tool.Call, why error)
	arranged   *arrange.Source // the manager's tools as the owner wants them
	catalog    *catalog.Catalog
	bus        *event.Bus
	log        *slog.Logger
	address    func() string // where our HTTP server is; empty: nowhere

	mu         sync.Mutex
	configured map[string]upstream.Spec
	added      map[string]upstream.Spec
	rules      map[string]arrange.Rule // of the configuration
	scripted   map[string]arrange.Rule // of startup.lua, over them
	hooks      atomic.Pointer[script.Hooks]
	warned     map[string][]string // what was said of each upstream's settings
}

// configure makes specs what the configuration wants; what is not in it any more
// goes, what did not change stays connected.
func (u *upstreams) configure(specs []upstream.Spec, rules map[string]arrange.Rule) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	configured := map[string]upstream.Spec{}
	for _, spec := range specs {
		configured[spec.Name] = spec
	}
	wanted := maps.Clone(u.added)
	if wanted == nil {
		wanted = map[string]upstream.Spec{}
	}
	maps.Copy(wanted, configured)
	if err := u.manager.Set(slices.Collect(maps.Values(wanted))); err != nil {
		return err
	}
	for name := range u.configured {
		u.catalog.Expose(name, catalog.Exposure{})
	}
	for name, spec := range configured {
		u.catalog.Expose(name, exposure(spec))
	}
	for name := range u.rules {
		u.arranged.SetRule(name, u.scripted[name])
	}
	for name, rule := range rules {
		u.arranged.SetRule(name, rule.Over(u.scripted[name]))
	}
	u.configured, u.rules = configured, rules
	return nil
}

func exposure(spec upstream.Spec) catalog.Exposure {
	if slices.Contains(spec.Expose, exposeAll) {
		return catalog.Exposure{All: true, Prefixes: spec.Prefixes}
	}
	return catalog.Exposure{Names: spec.Expose, Prefixes: spec.Prefixes}
}

// Add connects an upstream at somebody's wish.
func (u *upstreams) Add(ctx context.Context, want builtin.Upstream) error {
	u.did(ctx, "upstream.add", want.Namespace, []byte(want.URL))
	return u.want(upstream.Spec{
		Name: want.Namespace, URL: want.URL, Transport: want.Transport, Protocol: want.Protocol, Headers: want.Headers,
	})
}

// want adds an upstream beside those of the configuration, which keep their
// names.
func (u *upstreams) want(spec upstream.Spec) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if fixed, taken := u.configured[spec.Name]; taken {
		if fixed.URL == spec.URL && fixed.Command == spec.Command {
			return u.manager.Add(fixed) // it may have been disconnected
		}
		return fault.New(fault.Conflict, "upstream %s belongs to the configuration", spec.Name).
			WithHint("choose another name")
	}
	if err := u.manager.Add(spec); err != nil {
		return err
	}
	if u.added == nil {
		u.added = map[string]upstream.Spec{}
	}
	u.added[spec.Name] = spec
	return nil
}

// allowed asks the policy about an address a script wants.
func (u *upstreams) allowed(ctx context.Context, policy builtin.Policy, name, address string) error {
	target, err := url.Parse(address)
	if err != nil {
		return fault.New(fault.InvalidParams, "upstream %s: %q is not a URL", name, address)
	}
	return policy(ctx, target)
}

// Remove disconnects an upstream until it is added again or the server restarts.
func (u *upstreams) Remove(ctx context.Context, name string) (bool, error) {
	u.did(ctx, "upstream.remove", name, nil)
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.added, name)
	return u.manager.Remove(name), nil
}

// List is every upstream, sorted by name.
func (u *upstreams) List() []builtin.UpstreamStatus {
	list := []builtin.UpstreamStatus{}
	for _, s := range u.manager.List() {
		if !isSomebodys(s.Name) {
			list = append(list, u.status(s))
		}
	}
	return list
}

// Status is one upstream.
func (u *upstreams) Status(name string) (builtin.UpstreamStatus, bool) {
	s, ok := u.manager.Status(name)
	if !ok {
		return builtin.UpstreamStatus{}, false
	}
	return u.status(s), true
}

func (u *upstreams) status(s upstream.Status) builtin.UpstreamStatus {
	u.mu.Lock()
	_, fixed := u.configured[s.Name]
	u.mu.Unlock()
	return builtin.UpstreamStatus{
		Namespace: s.Name, Endpoint: s.Target, Transport: s.Transport, Protocol: s.Revision,
		State: string(s.State), Tools: s.Tools, Stale: s.Stale,
		Error: s.LastError, Hint: s.Hint, Login: u.loginAt(s), Attempt: s.Attempt, NextTry: s.NextTry, Fixed: fixed,
		Warnings: u.warnings(context.Background(), s), // from memory
	}
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
	until(ctx, u.manager, u.bus, name, done)
}

// until returns when done says so, the upstream is gone, or ctx ends.
func until(ctx context.Context, manager *upstream.Manager, bus *event.Bus, name string, done func(upstream.Status) bool) {
	sub := bus.Subscribe(event.Options{Types: []string{"upstream.*"}})
	defer sub.Close()
	for {
		if s, ok := manager.Status(name); !ok || done(s) {
			return
		}
		if _, err := sub.Next(ctx); err != nil {
			return
		}
	}
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
	peer, ok := u.manager.Peer(name)
	if !ok || isSomebodys(name) {
		return nil, false // not a typed nil
	}
	return narrowedPeer{watchedPeer{limitedPeer{trustedPeer{peer, name, u.guard}, name, u.catalog}, name, u}, name, u}, true
}

// Namespaces are the names of all upstreams but those that belong to somebody.
func (u *upstreams) Namespaces() []string {
	return slices.DeleteFunc(u.manager.Namespaces(), isSomebodys)
}

// follow keeps the catalog up to date with the upstreams until ctx ends.
func (u *upstreams) follow(ctx context.Context) {
	sub := u.bus.Subscribe(event.Options{
		Types: []string{"upstream.connected", "upstream.tools_refreshed", "upstream.removed"}, Mode: event.Latest,
	})
	defer sub.Close()
	for e := range sub.All(ctx) {
		u.catalog.Refresh(ctx)
		u.warn(ctx)
		if connected, ok := e.Data.(upstream.Connected); ok {
			u.catalog.Recovered(connected.Upstream)
		}
	}
}

var (
	_ builtin.Upstreams = (*upstreams)(nil)
	_ hub.Upstreams     = (*upstreams)(nil)
)
