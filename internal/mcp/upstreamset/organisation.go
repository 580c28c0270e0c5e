package upstreamset

import (
	"context"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
)

// Orgs lets those who manage an organisation add, change and remove upstreams of its own:
// MCP servers over HTTP that are not in private networks. They reach no other upstream: not
// the server's, not those that the configuration gives to the organisation, and not those
// of other organisations.
type Orgs struct {
	Set *Set
	// Most is how many an organisation may have.
	Most func(org string) int
	// CheckURL decides which addresses an organisation may add. Callers check with it what
	// they pass to Add, Connect and Edit.
	CheckURL func(ctx context.Context, target *url.URL) error
}

// orgTransports are those of MCP over HTTP.
var orgTransports = []string{"", "auto", "http", "sse"}

var orgUpstreamName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`) })

// List returns the upstreams that were added for an organisation.
func (o *Orgs) List(org string) []Status {
	return slices.DeleteFunc(o.Set.List(), func(s Status) bool {
		_, of := principal.SplitNamespace(s.Namespace)
		return of != org || s.Origin != OriginAdded
	})
}

// Find returns the namespace of an upstream that was added for an organisation.
func (o *Orgs) Find(org, name string) (string, error) {
	space := principal.InOrg(name, org)
	if !orgUpstreamName().MatchString(name) || !slices.ContainsFunc(o.List(org), func(s Status) bool { return s.Namespace == space }) {
		return "", fault.New(fault.NotFound, "the organisation %s has added no upstream %q", org, name).
			WithHint("upstreams of luanette.toml are changed by the operators of the server")
	}
	return space, nil
}

// Add stores an upstream that the organisation did not have before.
func (o *Orgs) Add(ctx context.Context, org, name string, server upstreamstore.Server) error {
	return o.change(ctx, org, name, "upstream.add", func(now *upstreamstore.Entry) (upstreamstore.Entry, error) {
		if now != nil {
			return upstreamstore.Entry{}, takenFault(name)
		}
		return upstreamstore.Entry{Server: server}, nil
	})
}

// Connect adds an upstream, or changes the address of one that the organisation added before,
// and enables it.
func (o *Orgs) Connect(ctx context.Context, org string, want Server) error {
	return o.change(ctx, org, want.Namespace, "upstream.add", func(now *upstreamstore.Entry) (upstreamstore.Entry, error) {
		if now == nil {
			return upstreamstore.Entry{Server: want.over(upstreamstore.Server{})}, nil
		}
		return upstreamstore.Entry{Server: want.over(now.Server)}, nil
	})
}

// Edit changes an upstream that the organisation added. One that is disabled stays so.
func (o *Orgs) Edit(ctx context.Context, org, name string, edit func(upstreamstore.Server) (upstreamstore.Server, error)) error {
	if _, err := o.Find(org, name); err != nil { //nolint:contextcheck // it only looks at memory
		return err
	}
	return o.change(ctx, org, name, "upstream.edit", func(now *upstreamstore.Entry) (upstreamstore.Entry, error) {
		if now == nil {
			return upstreamstore.Entry{}, fault.New(fault.NotFound, "the organisation %s has added no upstream %q", org, name).WithHint("it was removed just now")
		}
		server, err := edit(now.Server)
		return upstreamstore.Entry{Server: server, Removed: now.Removed}, err
	})
}

// change replaces the stored upstream of an organisation by the result of next, on all nodes.
// next gets nil if there is none.
func (o *Orgs) change(ctx context.Context, org, name, action string, next func(now *upstreamstore.Entry) (upstreamstore.Entry, error)) error {
	if err := o.checkName(org, name); err != nil {
		return err
	}
	space := principal.InOrg(name, org)
	var stored upstreamstore.Server
	err := o.update(ctx, space, "@"+org, func(now *upstreamstore.Entry, among []*upstreamstore.Entry) (*upstreamstore.Entry, error) {
		switch {
		case now == nil || now.Removed && !now.Disabled():
			now = nil
			if most := o.Most(org); o.count(among) >= most {
				return nil, fault.New(fault.Limit, "the organisation %s may add %d upstreams", org, most).
					WithHint("remove one; the operators of the server set orgs.%s.max_upstreams", org)
			}
		case now.Err != nil:
			return nil, now.Err
		case !now.Server.Guarded:
			return nil, fault.New(fault.Denied, "the operators of the server added %s for %s", name, org).WithHint("they can change it; you can remove it")
		}
		entry, err := next(now)
		if err == nil {
			err = checkOrgServer(space, entry.Server)
		}
		if err != nil {
			return nil, err
		}
		entry.Server.Guarded = true
		stored = entry.Server
		return &entry, nil
	})
	if err == nil {
		o.Set.Audit(ctx, action, space, []byte(stored.URL))
	}
	return err
}

// checkName refuses names that cannot be those of an organisation's upstream, and those of
// upstreams that were not added.
func (o *Orgs) checkName(org, name string) error {
	if err := principal.CheckOrg(org); err != nil {
		return err
	}
	if !orgUpstreamName().MatchString(name) {
		return fault.New(fault.InvalidParams, "namespace %q is not a valid name", name).
			WithHint("use a letter, then at most 63 letters, digits, _ or -, without the organisation")
	}
	u, space := o.Set, principal.InOrg(name, org)
	u.mu.Lock()
	defer u.mu.Unlock()
	switch origin, _ := u.origin(space); origin {
	case originConfig:
		return fault.New(fault.Conflict, "upstream %s belongs to the configuration", name).WithHint("choose another name")
	case originStartup:
		return takenFault(name)
	}
	return nil
}

// count counts the entries that are upstreams which were added.
func (o *Orgs) count(among []*upstreamstore.Entry) (n int) {
	o.Set.mu.Lock()
	defer o.Set.mu.Unlock()
	for _, entry := range among {
		if _, configured := o.Set.configured[entry.Name]; !configured && (!entry.Removed || entry.Disabled()) {
			n++
		}
	}
	return n
}

// checkOrgServer refuses what an organisation cannot add.
func checkOrgServer(space string, server upstreamstore.Server) error {
	if !slices.Contains(orgTransports, server.Transport) {
		return fault.New(fault.Denied, "an organisation adds MCP servers over HTTP, not %s", server.Transport).
			WithHint("the operators of the server can add it")
	}
	return checkAdded(specOf(space, server))
}

// update changes the stored entry of an upstream. next also gets the entries whose names have
// the same ending.
func (o *Orgs) update(ctx context.Context, space, ending string, next func(now *upstreamstore.Entry, among []*upstreamstore.Entry) (*upstreamstore.Entry, error)) error {
	u := o.Set
	if u.Persistent {
		if err := u.Store.ChangeAmong(ctx, space, callerName(ctx), ending, next); err != nil {
			return err
		}
		return u.Reload(context.WithoutCancel(ctx))
	}
	return u.updateHere(ctx, space, func(now *upstreamstore.Entry, all map[string]*upstreamstore.Entry) (*upstreamstore.Entry, error) {
		among := slices.DeleteFunc(slices.Collect(maps.Values(all)), func(e *upstreamstore.Entry) bool { return !strings.HasSuffix(e.Name, ending) })
		return next(now, among)
	})
}
