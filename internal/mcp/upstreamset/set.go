// Package upstreamset decides which upstreams there are: those of the configuration,
// of startup.lua, of users who added them while the server runs, and private ones of
// chats. It keeps the connection manager and the catalog in line with that, and
// reports the status of each.
package upstreamset

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/overlay"
)

// Options are the parts that a set connects.
type Options struct {
	Manager *upstream.Manager
	Overlay *overlay.Source // the manager's tools with the owner's names and texts
	Catalog *catalog.Catalog
	Store   *upstreamstore.Store
	Events  *event.Bus
	Log     *slog.Logger
	// Persistent stores what users add; otherwise it lasts as long as the process.
	Persistent bool
	// Audit records an administrative action.
	Audit func(ctx context.Context, action, subject string, detail []byte)
	// Address is the URL of our HTTP server; "" if there is none.
	Address func() string
	// Warnings are further problems of a namespace, such as tools that await review.
	Warnings func(namespace string) []string
}

// Set is the set of upstreams. It is safe for concurrent use.
type Set struct {
	Options
	manager *upstream.Manager
	catalog *catalog.Catalog

	changing sync.Mutex // held while the manager is changed; taken before mu
	exposed  map[string]catalog.Exposure

	mu         sync.Mutex
	configured map[string]upstream.Spec
	places     map[string]string               // file:line of those
	startup    map[string]upstream.Spec        // of startup.lua
	dropped    map[string]bool                 // removed by startup.lua
	entries    map[string]*upstreamstore.Entry // of users, on all nodes
	private    map[string]upstream.Spec        // of chats
	rules      map[string]overlay.Rule         // of the configuration
	scripted   map[string]overlay.Rule         // of startup.lua; they override rules
	warned     map[string][]string             // warnings logged so far
}

// New returns the set with what users added before.
func New(ctx context.Context, o Options) (u *Set, err error) {
	u = &Set{Options: o, manager: o.Manager, catalog: o.Catalog}
	u.entries, err = u.read(ctx)
	return u, err
}

// Server is an upstream to connect to: over the network, never a command.
type Server struct {
	Namespace string
	URL       string
	Transport string // "", "http" or "sse"
	Protocol  string // "", "legacy" or "modern"
	Headers   map[string]string
}

// privatePrefix begins the namespaces of private upstreams.
const privatePrefix = "own-"

// IsPrivate tells whether a namespace belongs to the chats of one user. No other
// principal sees it.
func IsPrivate(namespace string) bool { return strings.HasPrefix(namespace, privatePrefix) }

// PrivateName is the namespace of a private upstream.
func PrivateName(id string) string { return privatePrefix + id }

func exposure(spec upstream.Spec) catalog.Exposure {
	if slices.Contains(spec.Expose, upstream.ExposeAll) {
		return catalog.Exposure{All: true, Prefixes: spec.Prefixes}
	}
	return catalog.Exposure{Names: spec.Expose, Prefixes: spec.Prefixes}
}

// Add adds an upstream for a user, on all nodes.
func (u *Set) Add(ctx context.Context, want Server) error {
	u.Audit(ctx, "upstream.add", want.Namespace, []byte(want.URL))
	return u.Connect(ctx, want.Namespace, upstreamstore.Server{
		URL: want.URL, Transport: want.Transport, Protocol: want.Protocol, Headers: want.Headers,
	})
}

// List returns every upstream, sorted by name. Those that a user removed although the
// configuration has them are listed as removed.
func (u *Set) List() []Status {
	list := []Status{}
	for _, s := range u.manager.List() {
		if !IsPrivate(s.Name) {
			list = append(list, u.status(s))
		}
	}
	list = append(list, u.absent()...)
	slices.SortStableFunc(list, func(a, b Status) int { return strings.Compare(a.Namespace, b.Namespace) })
	return list
}

// Status returns the status of one upstream.
func (u *Set) Status(name string) (Status, bool) {
	if s, ok := u.manager.Status(name); ok {
		return u.status(s), true
	}
	for _, s := range u.absent() {
		if s.Namespace == name {
			return s, true
		}
	}
	return Status{}, false
}

func (u *Set) status(s upstream.Status) Status {
	status := Status{
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

// tellOrigin adds where an upstream comes from. u.mu is held.
func (u *Set) tellOrigin(s *Status) {
	s.Origin, _ = u.origin(s.Namespace)
	s.Fixed = s.Origin == originConfig
	s.ConfiguredAt = u.places[s.Namespace]
	if entry := u.entries[s.Namespace]; entry != nil {
		s.By, s.Changed = entry.By, entry.Changed
	}
}

// States of upstreams that are not connected although someone asked for them.
const (
	StateRemoved    = "removed"    // the configuration has it, and a user removed it
	stateUnreadable = "unreadable" // a user added it, and its entry is encrypted with another key
)

// absent are the upstreams that are configured or added, but not connected.
func (u *Set) absent() (list []Status) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for name, entry := range u.entries {
		origin, removed := u.origin(name)
		s := Status{Namespace: name}
		switch {
		case removed && origin != "":
			spec := u.configured[name]
			if origin == originStartup {
				spec = u.startup[name]
			}
			s.Endpoint, s.State = spec.Target(), StateRemoved
			s.Hint = "removed by " + entry.By + "; `luanette upstream restore " + name + "` brings it back"
		case entry.Err != nil && origin == originAdded:
			s.State, s.Error, s.Hint = stateUnreadable, entry.Err.Error(), fault.HintOf(entry.Err)
		default:
			continue
		}
		u.tellOrigin(&s)
		list = append(list, s)
	}
	return list
}

// Await returns when the upstream is connected, asleep, removed or needs a login.
func (u *Set) Await(ctx context.Context, name string) {
	u.await(ctx, name, func(s upstream.Status) bool {
		return s.State == upstream.StateConnected || s.State == upstream.StateNeedsAuth || s.State == upstream.StateAsleep
	})
}

// Wait returns when the upstream is connected or an attempt has failed.
func (u *Set) Wait(ctx context.Context, name string) {
	u.await(ctx, name, func(s upstream.Status) bool { return s.State != upstream.StateConnecting })
}

// WaitAll waits for every upstream, at most for timeout.
func (u *Set) WaitAll(ctx context.Context, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, name := range u.Namespaces() {
		u.Wait(ctx, name)
	}
}

func (u *Set) await(ctx context.Context, name string, done func(upstream.Status) bool) {
	u.manager.Await(ctx, u.Events, name, done)
}

// loginAt is the address where a person can log in to an upstream that requires it.
func (u *Set) loginAt(s upstream.Status) string {
	base := ""
	if u.Address != nil {
		base = u.Address()
	}
	if s.State != upstream.StateNeedsAuth || base == "" || len(s.Desired.Addresses()) == 0 {
		return ""
	}
	return base + "/api/v1/upstreams/" + s.Name + "/login"
}

// Refresh fetches the upstream's list of tools again.
func (u *Set) Refresh(ctx context.Context, name string) ([]tool.Info, error) {
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

// Has tells whether there is such an upstream.
func (u *Set) Has(name string) bool { return u.manager.Has(name) && !IsPrivate(name) }

// Namespaces are the names of all upstreams that are not private.
func (u *Set) Namespaces() []string {
	return slices.DeleteFunc(u.manager.Namespaces(), IsPrivate)
}

// Follow keeps the catalog up to date with the upstreams until ctx ends.
func (u *Set) Follow(ctx context.Context) {
	sub := u.Events.Subscribe(event.Options{
		Types: []string{"upstream.connected", "upstream.tools_refreshed", "upstream.removed"}, Mode: event.Latest,
	})
	defer sub.Close()
	u.catalog.Refresh(ctx) // some may have connected before the subscription
	u.warn(ctx)
	for e := range sub.All(ctx) {
		u.catalog.Refresh(ctx)
		u.warn(ctx)
		if connected, ok := e.Data.(upstream.Connected); ok {
			u.catalog.ResetBreaker(connected.Upstream)
		}
	}
}
