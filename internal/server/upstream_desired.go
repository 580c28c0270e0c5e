package server

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
	"github.com/luanette/luanette/internal/tools/catalog"
	"github.com/luanette/luanette/internal/tools/overlay"
)

// wants is which upstreams there should be, by who says so. The configuration wins
// over what people added while we run, and that over startup.lua; what people
// removed is not there, whoever else wants it.
type wants struct {
	store   *upstreamstore.Store
	lasting bool // what people want is kept; a server built in passing keeps it to itself

	changing sync.Mutex // held while the upstreams are brought in line; taken before mu
	exposed  map[string]catalog.Exposure

	mu         sync.Mutex
	configured map[string]upstream.Spec
	places     map[string]string               // where the configuration has them: file:line
	startup    map[string]upstream.Spec        // of startup.lua
	dropped    map[string]bool                 // by startup.lua, of those that others want
	wishes     map[string]*upstreamstore.Entry // of people, on all nodes
	private    map[string]upstream.Spec        // of chats
	rules      map[string]overlay.Rule         // of the configuration
	scripted   map[string]overlay.Rule         // of startup.lua, over them
}

// openWants reads what people want.
func (srv *Server) openWants(ctx context.Context) (err error) {
	u := srv.upstreams
	u.lasting = srv.options.Jobs
	box := secret.Box{
		Key:          sync.OnceValues(func() (secret.Text, error) { return srv.config.OAuthKey(srv.secrets) }),
		RecoveryHint: "add the upstream again with `luanette upstream add`",
	}
	if u.store, err = upstreamstore.Open(ctx, srv.store, box); err != nil {
		return err
	}
	u.wishes, err = u.readWishes(ctx)
	return err
}

// Where an upstream comes from.
const (
	originConfig  = "config"
	originStartup = "startup"
	originAdded   = "added"
)

// origin tells who wants an upstream, and whether somebody removed it. w.mu is held.
func (w *wants) origin(name string) (origin string, removed bool) {
	wish := w.wishes[name]
	removed = wish != nil && wish.Removed
	if _, ok := w.configured[name]; ok {
		return originConfig, removed
	}
	if wish != nil && !removed {
		return originAdded, false
	}
	if _, ok := w.startup[name]; ok {
		return originStartup, removed
	}
	return "", false
}

// desired is what there should be. w.mu is held.
func (w *wants) desired() map[string]upstream.Spec {
	all := maps.Clone(w.startup)
	if all == nil {
		all = map[string]upstream.Spec{}
	}
	for name, wish := range w.wishes {
		if spec := specOf(name, wish.Server); !wish.Removed && wish.Err == nil && spec.Validate() == nil {
			all[name] = spec
		}
	}
	maps.Copy(all, w.configured)
	maps.DeleteFunc(all, func(name string, _ upstream.Spec) bool {
		wish := w.wishes[name]
		return w.dropped[name] || wish != nil && wish.Removed
	})
	maps.Copy(all, w.private)
	return all
}

// specOf is a server that somebody added, in the connection manager's words.
func specOf(name string, s upstreamstore.Server) upstream.Spec {
	return upstream.Spec{
		Name: name, URL: s.URL, Transport: s.Transport, Protocol: s.Protocol, Headers: s.Headers,
		Expose: s.Expose, AllowedTools: s.AllowedTools, DisabledTools: s.DisabledTools, ReadOnly: s.ReadOnly, Timeout: s.Timeout,
	}
}

// align has change alter what is wanted, and brings the upstreams in line with it.
func (u *upstreams) align(change func()) error {
	u.changing.Lock()
	defer u.changing.Unlock()
	return u.aligned(change)
}

// aligned is align for who holds u.changing.
func (u *upstreams) aligned(change func()) error {
	u.mu.Lock()
	change()
	desired := u.desired()
	u.mu.Unlock()
	if err := u.manager.Set(slices.Collect(maps.Values(desired))); err != nil {
		return err
	}
	exposed := map[string]catalog.Exposure{}
	for name, spec := range desired {
		if isPrivateNamespace(name) {
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

// configure makes specs what the configuration wants; what is not in it any more
// goes, what did not change stays connected.
func (u *upstreams) configure(specs []upstream.Spec, places map[string]string, rules map[string]overlay.Rule) error {
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
		u.overlay.SetRule(name, u.scripted[name])
	}
	for name, rule := range rules {
		u.overlay.SetRule(name, rule.Over(u.scripted[name]))
	}
	u.rules = rules
	return nil
}

// edited are those of specs that the configuration did not want, or not so, until
// now.
func (u *upstreams) edited(specs []upstream.Spec) (names []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, spec := range specs {
		if before, ok := u.configured[spec.Name]; !ok || !before.Equal(spec) {
			names = append(names, spec.Name)
		}
	}
	return names
}

// removed are the upstreams of the configuration that somebody removed.
func (u *upstreams) removed() map[string]bool {
	names := map[string]bool{}
	u.mu.Lock()
	defer u.mu.Unlock()
	for name := range u.configured {
		if wish := u.wishes[name]; wish != nil && wish.Removed {
			names[name] = true
		}
	}
	return names
}

// unremove brings upstreams back that somebody removed: their owner has asked for
// them anew.
func (u *upstreams) unremove(ctx context.Context, names []string) error {
	for _, name := range names {
		u.mu.Lock()
		wish := u.wishes[name]
		u.mu.Unlock()
		if wish == nil || !wish.Removed {
			continue
		}
		if err := u.wish(ctx, name, func(now *upstreamstore.Entry) (*upstreamstore.Entry, error) {
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

// wish changes what people want of an upstream, on all nodes, and here at once.
func (u *upstreams) wish(ctx context.Context, name string, next func(now *upstreamstore.Entry) (*upstreamstore.Entry, error)) error {
	if u.lasting {
		if err := u.store.Change(ctx, name, byWhom(ctx), next); err != nil {
			return err
		}
		return u.hearWishes(context.WithoutCancel(ctx))
	}
	u.changing.Lock()
	defer u.changing.Unlock()
	u.mu.Lock()
	now := u.wishes[name]
	u.mu.Unlock()
	want, err := next(now)
	if err != nil {
		return err
	}
	return u.aligned(func() {
		wishes := maps.Clone(u.wishes)
		delete(wishes, name)
		if want != nil {
			kept := *want
			kept.Name, kept.By, kept.Changed = name, byWhom(ctx), time.Now().UTC()
			wishes[name] = &kept
		}
		u.wishes = wishes
	})
}

// byWhom names who asks.
func byWhom(ctx context.Context) string {
	who := principal.Of(ctx)
	return cmp.Or(who.Name, who.ID)
}

// readWishes is what people want, as it is kept.
func (u *upstreams) readWishes(ctx context.Context) (map[string]*upstreamstore.Entry, error) {
	all, err := u.store.All(ctx)
	if err != nil {
		return nil, err
	}
	wishes := map[string]*upstreamstore.Entry{}
	for _, wish := range all {
		wishes[wish.Name] = wish
		if wish.Err != nil {
			u.log.WarnContext(ctx, "an upstream that was added cannot be read", "upstream", wish.Name, "error", wish.Err)
		}
	}
	return wishes, nil
}

// hearWishes brings the upstreams in line with what people want by now.
func (u *upstreams) hearWishes(ctx context.Context) error {
	u.changing.Lock()
	defer u.changing.Unlock()
	wishes, err := u.readWishes(ctx)
	if err != nil {
		return err
	}
	err = u.aligned(func() { u.wishes = wishes })
	u.catalog.Refresh(ctx)
	return err
}

// watchWishes hears of what people want on other nodes, and in other processes that
// use the same file, until ctx ends.
func (srv *Server) watchWishes(ctx context.Context) {
	u := srv.upstreams
	last := [2]int64{-1} // what was read at the start is read once more: it may be another by now
	srv.poll(ctx, upstreamstore.Topic, func(ctx context.Context) error {
		stamp, err := u.store.Fingerprint(ctx)
		if err != nil || stamp == last {
			return err
		}
		if err = u.hearWishes(ctx); err == nil {
			last = stamp
		}
		return err
	})
}

// connect wants a server at somebody's wish: the tools, scripts.
func (u *upstreams) connect(ctx context.Context, name string, server upstreamstore.Server) error {
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
		return u.unremove(ctx, []string{name})
	}
	return u.wish(ctx, name, func(now *upstreamstore.Entry) (*upstreamstore.Entry, error) {
		next := server
		if now != nil && !now.Removed && upstreamstore.SameOrigin(now.Server.URL, server.URL) {
			next = now.Server // what else was set about it stays
			next.URL, next.Transport, next.Protocol, next.Headers = server.URL, server.Transport, server.Protocol, server.Headers
		}
		return &upstreamstore.Entry{Server: next}, nil
	})
}

// checkAdded says what is wrong with a server that somebody wants to add.
func checkAdded(spec upstream.Spec) error {
	if isPrivateNamespace(spec.Name) {
		return fault.New(fault.InvalidParams, "names that begin with %s are taken", privatePrefix).WithHint("choose another name")
	}
	return spec.Validate()
}

// configuredFault says that the configuration has an upstream, and where.
func configuredFault(name, place string) *fault.Error {
	if place == "" {
		return fault.New(fault.Conflict, "upstream %s belongs to the configuration", name)
	}
	return fault.New(fault.Conflict, "upstream %s belongs to the configuration: %s", name, place)
}

// Remove ends an upstream on all nodes, until somebody wants it again. One that the
// configuration or startup.lua has stays listed as removed.
func (u *upstreams) Remove(ctx context.Context, name string) (removed bool, err error) {
	if isPrivateNamespace(name) {
		return u.removePrivate(name)
	}
	u.audit(ctx, "upstream.remove", name, nil)
	u.mu.Lock()
	_, configured := u.configured[name]
	_, startup := u.startup[name]
	u.mu.Unlock()
	err = u.wish(ctx, name, func(now *upstreamstore.Entry) (*upstreamstore.Entry, error) {
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

// Restore brings back one that was removed while the configuration has it.
func (u *upstreams) Restore(ctx context.Context, name string) error {
	u.audit(ctx, "upstream.restore", name, nil)
	return u.wish(ctx, name, func(now *upstreamstore.Entry) (*upstreamstore.Entry, error) {
		if now == nil || !now.Removed {
			return nil, fault.New(fault.Conflict, "upstream %q was not removed", name).WithHint("`luanette upstream list` shows how each is")
		}
		return nil, nil
	})
}

// want connects a server that belongs to somebody's chat.
func (u *upstreams) want(spec upstream.Spec) error {
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

func (u *upstreams) removePrivate(name string) (removed bool, err error) {
	err = u.align(func() {
		_, removed = u.private[name]
		delete(u.private, name)
	})
	return removed, err
}

// addLocal wants a server on this node only, as startup.lua says.
func (u *upstreams) addLocal(spec upstream.Spec) error {
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

// removeLocal ends a server on this node only.
func (u *upstreams) removeLocal(name string) (removed bool, err error) {
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
