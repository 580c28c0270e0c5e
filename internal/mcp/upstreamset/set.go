// Package upstreamset decides which upstreams there are: those of the configuration,
// of startup.lua, of users who added them while the server runs, and private ones of
// chats. It keeps the connection manager and the catalog in line with that, and
// reports the status of each.
package upstreamset

import (
	"context"
	"log/slog"
	"maps"
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
	private    privateUpstreams
	untrusted  map[string]string              // of a configuration that is not trusted: what they would do
	rules      map[string]overlay.Rule        // of the configuration
	scripted   map[string]overlay.Rule        // of startup.lua; they override rules
	warned     map[string][]string            // warnings logged so far
	undo       map[string]upstreamstore.Entry // of users, removed while this process runs
	problems   []string                       // of the configuration as a whole
}

// New returns the set with what users added before.
func New(ctx context.Context, o Options) (u *Set, err error) {
	u = &Set{
		Options: o, startup: map[string]upstream.Spec{}, dropped: map[string]bool{}, private: privateUpstreams{},
		scripted: map[string]overlay.Rule{}, warned: map[string][]string{}, undo: map[string]upstreamstore.Entry{},
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
	if entry != nil && (!removed || entry.Settings.URL != "") {
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
		if spec := specOf(entry); !entry.Removed && entry.Err == nil && spec.Validate() == nil {
			all[name] = spec
		}
	}
	maps.Copy(all, u.configured)
	maps.DeleteFunc(all, func(name string, _ upstream.Spec) bool {
		entry := u.entries[name]
		return u.dropped[name] || entry != nil && entry.Removed
	})
	for name, p := range u.private {
		all[name] = p.spec
	}
	return all
}

// specOf is the connection manager's specification of a server that was added.
func specOf(entry *upstreamstore.Entry) upstream.Spec {
	return upstream.Spec{Name: entry.Name, Settings: entry.Settings, Guarded: entry.Guarded}
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

// Configure sets the upstreams of the configuration. Upstreams that did not change stay
// connected.
func (u *Set) Configure(specs []upstream.Spec, places map[string]string, rules map[string]overlay.Rule) error {
	configured := map[string]upstream.Spec{}
	for _, spec := range specs {
		configured[spec.Name] = spec
	}
	err := u.apply(func() { u.configured, u.places, u.dropped = configured, places, map[string]bool{} })
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	before := u.rules
	u.rules = rules
	for name := range before {
		u.Overlay.SetRule(name, u.rule(name))
	}
	for name := range rules {
		u.Overlay.SetRule(name, u.rule(name))
	}
	return nil
}

// SetUntrusted sets the upstreams of the configuration that are not started, since the
// user does not trust its file yet: what they would do, by name. They are only listed.
func (u *Set) SetUntrusted(names map[string]string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.untrusted = names
}

// SetProblems sets what is wrong with the configuration of upstreams as a whole, such as
// a file that cannot be imported.
func (u *Set) SetProblems(problems []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.problems = problems
}

// Problems returns what SetProblems set.
func (u *Set) Problems() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.problems
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
		if err := u.update(ctx, name, unremoved); err != nil {
			return err
		}
	}
	return nil
}

// unremoved is the entry without a removal.
func unremoved(now *upstreamstore.Entry) (*upstreamstore.Entry, error) {
	if now != nil && now.Removed {
		return nil, nil
	}
	return now, nil
}

// ChangeRule changes the rule of startup.lua for a namespace's tools.
func (u *Set) ChangeRule(ctx context.Context, namespace string, change func(*overlay.Rule)) error {
	u.mu.Lock()
	rule := u.scripted[namespace]
	rule.Tools, rule.Aliases = maps.Clone(rule.Tools), maps.Clone(rule.Aliases)
	change(&rule)
	err := rule.Validate()
	if err == nil {
		u.scripted[namespace] = rule
		u.Overlay.SetRule(namespace, u.rule(namespace))
	}
	u.mu.Unlock()
	if err == nil {
		u.Catalog.Refresh(ctx)
	}
	return err
}
