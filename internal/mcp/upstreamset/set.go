// Package upstreamset decides which upstreams there are: those of the configuration,
// of startup.lua, of users who added them while the server runs, and private ones of
// chats. It keeps the connection manager and the catalog in line with that, and
// reports the status of each.
package upstreamset

import (
	"context"
	"log/slog"
	"slices"
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
	Pins     Pins
}

// Set is the set of upstreams. It is safe for concurrent use.
type Set struct {
	Options

	variants variants
	changing sync.Mutex // held while the manager is changed; taken before mu
	exposed  map[string]catalog.Exposure
	applied  upstreamstore.Stamp // of the entries that were applied last

	inProcess []*inProcess // never changed once the set is used

	mu         sync.Mutex
	configured map[string]upstream.Spec
	places     map[string]string               // file:line of those
	startup    map[string]upstream.Spec        // of startup.lua
	dropped    map[string]bool                 // removed by startup.lua
	entries    map[string]*upstreamstore.Entry // of users, on all nodes
	private    map[string]upstream.Spec        // of chats
	untrusted  map[string]string               // of a configuration that is not trusted: what they would do
	rules      map[string]overlay.Rule         // of the configuration
	scripted   map[string]overlay.Rule         // of startup.lua; they override rules
	warned     map[string][]string             // warnings logged so far
	undo       map[string]upstreamstore.Server // of users, removed while this process runs
	problems   []string                        // of the configuration as a whole
}

// New returns the set with what users added before.
func New(ctx context.Context, o Options) (u *Set, err error) {
	u = &Set{
		Options: o, startup: map[string]upstream.Spec{}, dropped: map[string]bool{}, private: map[string]upstream.Spec{},
		scripted: map[string]overlay.Rule{}, warned: map[string][]string{}, undo: map[string]upstreamstore.Server{},
	}
	u.entries, u.applied, err = u.read(ctx)
	return u, err
}

// Has tells whether there is an upstream of that name that is not private.
func (u *Set) Has(name string) bool { return u.Manager.Has(name) && !IsPrivate(name) }

// Namespaces returns the names of all upstreams that are not private.
func (u *Set) Namespaces() []string {
	return slices.DeleteFunc(u.Manager.Namespaces(), IsPrivate)
}

// RootsChanged passes on that a client's roots have changed.
func (u *Set) RootsChanged(client tool.Client) { u.Manager.RootsChanged(client) }

// Await returns when the upstream is connected, asleep, removed, has failed or needs a
// login.
func (u *Set) Await(ctx context.Context, name string) {
	u.Manager.Await(ctx, u.Events, name, func(s upstream.Status) bool {
		switch s.State {
		case upstream.StateConnected, upstream.StateNeedsAuth, upstream.StateAsleep, upstream.StateFailed:
			return true
		}
		return false
	})
}

// AwaitAttempt returns when the upstream is connected or an attempt has failed.
func (u *Set) AwaitAttempt(ctx context.Context, name string) {
	u.Manager.Await(ctx, u.Events, name, upstream.Status.Attempted)
}

// AwaitAttempts waits for an attempt of every upstream, at most for timeout.
func (u *Set) AwaitAttempts(ctx context.Context, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, name := range u.Namespaces() {
		u.AwaitAttempt(ctx, name)
	}
}

// Start starts the upstreams of these names that are asleep, and waits for an attempt of
// each.
func (u *Set) Start(ctx context.Context, names ...string) {
	for _, name := range names {
		u.Manager.Wake(name)
	}
	for _, name := range names {
		u.AwaitAttempt(ctx, name)
	}
	u.Catalog.Refresh(ctx)
}

// Unlisted returns the upstreams that were never connected, so that their tools are not
// known.
func (u *Set) Unlisted() (names []string) {
	for _, s := range u.Manager.List() {
		if s.State != upstream.StateConnected && s.Revision == "" && !IsPrivate(s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}

// Refresh fetches the upstream's list of tools again.
func (u *Set) Refresh(ctx context.Context, name string) ([]tool.Info, error) {
	if p := u.local(name); p != nil {
		return p.source.Tools(ctx)
	}
	if err := u.Manager.Refresh(ctx, name); err != nil {
		return nil, err
	}
	u.Catalog.Refresh(ctx)
	tools, ok := u.Catalog.In(ctx, name)
	if !ok {
		return nil, fault.New(fault.NotFound, "no upstream %q", name)
	}
	return tools, nil
}

// Follow keeps the catalog up to date with the upstreams until ctx ends.
func (u *Set) Follow(ctx context.Context) {
	sub := u.Events.Subscribe(event.Options{
		Types: []string{"upstream.connected", "upstream.tools_refreshed", "upstream.removed"}, Mode: event.Latest,
	})
	defer sub.Close()
	u.Catalog.Refresh(ctx) // some may have connected before the subscription
	u.warn(ctx)
	for e := range sub.All(ctx) {
		u.Catalog.Refresh(ctx)
		u.warn(ctx)
		if connected, ok := e.Data.(upstream.Connected); ok {
			u.Catalog.ResetBreaker(connected.Upstream)
		}
	}
}
