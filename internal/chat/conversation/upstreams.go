package conversation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
)

// Upstreams connects the servers that organisations and people have configured. Those of
// organisations are upstreams like others; each of a person has a private namespace, which only
// that person's chats use.
type Upstreams struct {
	orgs  *upstreamset.Orgs
	allow func(ctx context.Context, target *url.URL) error

	mu   sync.Mutex
	used map[string]time.Time // of private namespaces
}

// NewUpstreams connects servers with a set of upstreams. allow decides which addresses the
// operators of the server may add.
func NewUpstreams(orgs *upstreamset.Orgs, allow func(ctx context.Context, target *url.URL) error) *Upstreams {
	return &Upstreams{orgs: orgs, allow: allow, used: map[string]time.Time{}}
}

// CheckURL refuses addresses that the principal of ctx may not add: administrators add those of
// organisations and those that operators add elsewhere.
func (p *Upstreams) CheckURL(ctx context.Context, target *url.URL) error {
	err := p.orgs.CheckURL(ctx, target)
	if err != nil && principal.Of(ctx).Admin() {
		return p.allow(ctx, target)
	}
	return err
}

const authorization = "Authorization"

// Put adds or changes an upstream. What an administrator adds for people without an
// organisation is everybody's.
func (p *Upstreams) Put(ctx context.Context, org string, s Server) (string, error) {
	change := func(now upstreamstore.Server) (upstreamstore.Server, error) {
		now.URL, now.Headers = s.URL, maps.Clone(now.Headers)
		if delete(now.Headers, authorization); s.AuthToken != "" {
			if now.Headers == nil {
				now.Headers = map[string]string{}
			}
			now.Headers[authorization] = "Bearer " + s.AuthToken
		}
		return now, nil
	}
	fresh, _ := change(upstreamstore.Server{})
	if !principal.Of(ctx).Admin() {
		if s.Space == "" {
			return principal.InOrg(s.ID, org), p.orgs.Add(ctx, org, s.ID, fresh)
		}
		name, _ := principal.SplitNamespace(s.Space)
		return s.Space, p.orgs.Edit(ctx, org, name, change)
	}
	if s.Space != "" {
		return s.Space, p.orgs.Set.EditServer(ctx, s.Space, change)
	}
	space := s.ID
	if org != DefaultOrg {
		if err := principal.CheckOrg(org); err != nil {
			return "", err
		}
		space = principal.InOrg(s.ID, org)
	}
	return space, p.orgs.Set.AddServer(ctx, space, fresh)
}

// Address returns the URL and the token of an upstream that was added.
func (p *Upstreams) Address(space string) (address, token string) {
	server, err := p.orgs.Set.Editable(space)
	if err != nil {
		return "", ""
	}
	return server.URL, strings.TrimPrefix(server.Headers[authorization], "Bearer ")
}

// Remove removes an upstream that was added.
func (p *Upstreams) Remove(ctx context.Context, org, space string) error {
	if name, _ := principal.SplitNamespace(space); !principal.Of(ctx).Admin() {
		if _, err := p.orgs.Find(org, name); err != nil { //nolint:contextcheck // it only looks at memory
			return err
		}
	}
	_, err := p.orgs.Set.Remove(ctx, space)
	return err
}

const (
	maxPrivate   = 500
	privateIdle  = time.Hour
	discoverWait = 10 * time.Second
)

// Own lists the upstreams.
func (p *Upstreams) Own() (list []Server) {
	for _, s := range p.orgs.Set.List() {
		if !upstreamset.IsPrivate(s.Namespace) && s.State != upstreamset.StateRemoved {
			list = append(list, Server{ID: s.Namespace, Name: s.Namespace, Enabled: true, Priority: 50})
		}
	}
	return list
}

// Connect connects a server.
func (p *Upstreams) Connect(ctx context.Context, owner Person, s Server) (string, error) {
	space := upstreamset.PrivateName(spaceOf(owner, s.ID))
	spec := upstream.Spec{Name: space, Settings: upstream.Settings{URL: s.URL}}
	if s.AuthToken != "" {
		spec.Headers = map[string]string{authorization: "Bearer " + s.AuthToken}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep(ctx)
	if _, there := p.used[space]; !there && len(p.used) >= maxPrivate {
		return "", fault.New(fault.Limit, "%d private servers are connected already", len(p.used)).WithHint("try again later")
	}
	if err := p.orgs.Set.AddPrivate(spec); err != nil {
		return "", err
	}
	p.used[space] = time.Now()
	return space, nil
}

// Unknown returns the namespaces that were not tried yet.
func (p *Upstreams) Unknown(spaces []string) (unknown []string) {
	for _, space := range spaces {
		if s, ok := p.orgs.Set.Manager.Status(space); ok && !s.Attempted() {
			unknown = append(unknown, space)
		}
	}
	return unknown
}

// Await waits for an attempt of each, and then lists their tools.
func (p *Upstreams) Await(ctx context.Context, spaces []string) {
	for _, space := range spaces {
		p.orgs.Set.AwaitAttempt(ctx, space)
	}
	p.orgs.Set.Catalog.Refresh(ctx)
}

// sweep removes servers that were not used for privateIdle. p.mu is held.
func (p *Upstreams) sweep(ctx context.Context) {
	for space, at := range p.used {
		if time.Since(at) > privateIdle {
			_, _ = p.orgs.Set.Remove(ctx, space) // it never fails
			delete(p.used, space)
		}
	}
}

// spaceOf derives a name from the server's id and its owner. URL and token may change.
func spaceOf(owner Person, id string) string {
	sum := sha256.Sum256([]byte(owner.Org + "\x00" + owner.User + "\x00" + id))
	return id[:min(len(id), longestID)] + "-" + hex.EncodeToString(sum[:5])
}

const longestID = 40 // in a namespace

// Discover waits for an attempt and returns the number of tools.
func (p *Upstreams) Discover(ctx context.Context, space string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, discoverWait)
	defer cancel()
	p.orgs.Set.AwaitAttempt(ctx, space)
	status, there := p.orgs.Set.Status(space) //nolint:contextcheck // it reads what is known, waiting for nothing
	switch {
	case !there:
		return 0, fault.New(fault.NotFound, "no server %q", space)
	case status.State != "connected" && status.State != "asleep":
		return 0, fault.New(fault.Unavailable, "%s: %s", status.State, status.Error)
	}
	return status.Tools, nil
}
