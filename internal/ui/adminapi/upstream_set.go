package adminapi

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin/servertools"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// UpstreamSet lists, adds, changes and removes the upstreams of a set.
type UpstreamSet struct {
	Set    *upstreamset.Set
	Node   string // the name of this node; "" if there is only one
	Counts servertools.Counts
	Policy servertools.Policy // which addresses may be added

	Elsewhere func(ctx context.Context, name string) // restarts one on the other nodes; nil: there are none

	ofOrg bool // it is for those who manage an organisation
}

// List returns the upstreams that the caller may see.
func (r UpstreamSet) List(ctx context.Context) UpstreamList {
	list := UpstreamList{Node: r.Node, Upstreams: []Upstream{}}
	for _, s := range servertools.SeenUpstreams(ctx, r.Set) {
		list.Upstreams = append(list.Upstreams, r.view(ctx, s))
	}
	return list
}

// Get returns one upstream.
func (r UpstreamSet) Get(ctx context.Context, name string) (Upstream, error) {
	who := principal.Of(ctx)
	space := who.Namespace(name, r.Set.Has)
	s, ok := r.Set.Status(space) //nolint:contextcheck // it reads what is known, waiting for nothing
	if !ok || upstreamset.IsPrivate(space) || !who.CanSee(space, "") {
		return Upstream{}, fault.New(fault.NotFound, "no upstream %q", name).WithHint("`luanette upstream list` lists them")
	}
	return r.view(ctx, s), nil
}

// view shows an upstream; those who may change it see its settings.
func (r UpstreamSet) view(ctx context.Context, s upstreamset.Status) Upstream {
	v := Upstream{UpstreamView: servertools.View(ctx, s, r.Counts), Wanted: s.State != upstreamset.StateRemoved, Since: s.Since}
	r.addProgram(&v, s.Namespace, principal.Of(ctx).Admin())
	if !r.ofOrg && !principal.Of(ctx).Admin() {
		return v
	}
	v.LastChange = s.Last
	if server, err := r.Set.Editable(s.Namespace); err == nil && v.Wanted && (server.Guarded || !r.ofOrg) {
		v.Editable = true
		v.Settings = server.Settings.Shown()
	}
	return v
}

// addProgram adds how often an upstream was connected, and the sandbox of its program.
func (r UpstreamSet) addProgram(v *Upstream, namespace string, admin bool) {
	known, ok := r.Set.Manager.Status(namespace)
	if !ok {
		return
	}
	v.Restarts, v.Connected = max(0, known.Stats.Connects-1), known.Stats.Connected
	if known.Desired.Command == "" {
		return
	}
	p := known.Desired.Profile
	v.Sandbox = &UpstreamSandbox{Level: cmp.Or(string(p.Level), string(profile.Off))}
	if !admin || !p.Active() {
		return
	}
	v.Sandbox.Read, v.Sandbox.Write, v.Sandbox.Network, v.Sandbox.Exec, v.Sandbox.Sockets = p.Read, p.Write, p.Network, p.Exec, p.Sockets
	for _, c := range p.Credentials {
		v.Sandbox.Secrets = append(v.Sandbox.Secrets, c.Name)
	}
}

// Add adds a server that did not exist.
func (r UpstreamSet) Add(ctx context.Context, name string, want upstream.Change) (Upstream, error) {
	if want["url"] == nil {
		return Upstream{}, fault.New(fault.InvalidParams, "url is missing").
			WithHint("servers that are started by a command belong into luanette.toml: luanette upstream add NAME -- COMMAND")
	}
	server, err := r.changed(ctx, upstream.Settings{}, want)
	if err != nil {
		return Upstream{}, err
	}
	if err := r.Set.AddServer(ctx, name, server); err != nil {
		return Upstream{}, err
	}
	return r.settled(ctx, name)
}

// Edit changes a server that was added while running.
func (r UpstreamSet) Edit(ctx context.Context, name string, want upstream.Change) (Upstream, error) {
	err := r.Set.EditServer(ctx, name, func(s upstream.Settings) (upstream.Settings, error) { return r.changed(ctx, s, want) })
	if err != nil {
		return Upstream{}, err
	}
	return r.settled(ctx, name)
}

// changed returns a server with the wanted changes. Headers are not carried over to another
// origin, because they may hold secrets.
func (r UpstreamSet) changed(ctx context.Context, s upstream.Settings, want upstream.Change) (upstream.Settings, error) {
	if address, given := want["url"]; given {
		moved, _, err := upstream.Change{"url": address}.Apply(s, nil)
		if err != nil {
			return s, err
		}
		if moved.URL, err = servertools.Target(ctx, r.Policy, moved.URL); err != nil {
			return s, err
		}
		if !upstreamstore.SameOrigin(s.URL, moved.URL) {
			if want["headers"] == nil && len(s.Headers) > 0 {
				return s, fault.New(fault.InvalidParams, "headers: those of %s are not sent to another server", originOf(s.URL)).
					WithHint("give the headers for the new server; {} for none")
			}
			moved.Headers = nil
		}
		s, want = moved, maps.Clone(want)
		delete(want, "url")
	}
	s, _, err := want.Apply(s, nil)
	return s, err
}

func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the old server"
	}
	return u.Scheme + "://" + u.Host
}

// settleTime is how long a change waits for the result of the connection.
const settleTime = 2 * time.Second

// settled returns the upstream when the connection has succeeded or failed, at the latest
// after settleTime.
func (r UpstreamSet) settled(ctx context.Context, name string) (Upstream, error) {
	waiting, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	r.Set.AwaitAttempt(waiting, name)
	return r.Get(ctx, name)
}

// Remove removes an upstream.
func (r UpstreamSet) Remove(ctx context.Context, name string) (RemovedUpstream, error) {
	before, err := r.Get(ctx, name)
	if err != nil {
		return RemovedUpstream{}, err
	}
	removed, err := r.Set.Remove(ctx, name)
	return RemovedUpstream{Namespace: name, Removed: removed, ConfiguredAt: before.ConfiguredAt}, err
}

// Restore brings back a removed upstream.
func (r UpstreamSet) Restore(ctx context.Context, name string) (Upstream, error) {
	if err := r.Set.Restore(ctx, name); err != nil {
		return Upstream{}, err
	}
	return r.settled(ctx, name)
}

// Retry connects again at once.
func (r UpstreamSet) Retry(ctx context.Context, name string) (Upstream, error) {
	if _, err := r.Get(ctx, name); err != nil {
		return Upstream{}, err
	}
	r.Set.Manager.Retry(name)
	return r.settled(ctx, name)
}

// Disable disconnects an upstream, which stays listed.
func (r UpstreamSet) Disable(ctx context.Context, name string) (Upstream, error) {
	if _, err := r.Get(ctx, name); err != nil {
		return Upstream{}, err
	}
	if err := r.Set.Disable(ctx, name); err != nil {
		return Upstream{}, err
	}
	return r.Get(ctx, name)
}

// Restart ends the connection, and the program of the upstream, and connects again, on all
// nodes. The answer is about this one.
func (r UpstreamSet) Restart(ctx context.Context, name string) (Upstream, error) {
	if _, err := r.Get(ctx, name); err != nil {
		return Upstream{}, err
	}
	if err := r.Set.Manager.Restart(name); err != nil {
		return Upstream{}, err
	}
	if r.Elsewhere != nil {
		r.Elsewhere(ctx, name)
	}
	return r.settled(ctx, name)
}
