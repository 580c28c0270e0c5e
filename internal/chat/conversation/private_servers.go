package conversation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
)

// PrivateServers connects the servers that people and organisations have configured. Each
// has a private namespace, which only the chats of its owner use.
type PrivateServers struct {
	set *upstreamset.Set

	mu   sync.Mutex
	used map[string]time.Time // by namespace
}

// NewPrivateServers returns the private servers of a set.
func NewPrivateServers(set *upstreamset.Set) *PrivateServers {
	return &PrivateServers{set: set, used: map[string]time.Time{}}
}

const (
	maxPrivate   = 500
	privateIdle  = time.Hour
	discoverWait = 10 * time.Second
)

// Own lists the server's own upstreams.
func (p *PrivateServers) Own() (list []Server) {
	for _, s := range p.set.List() {
		if !upstreamset.IsPrivate(s.Namespace) && s.State != upstreamset.StateRemoved {
			list = append(list, Server{ID: s.Namespace, Name: s.Namespace, Enabled: true, Priority: 50})
		}
	}
	return list
}

// Connect connects a server.
func (p *PrivateServers) Connect(ctx context.Context, owner Person, s Server) (string, error) {
	space := upstreamset.PrivateName(spaceOf(owner, s.ID))
	spec := upstream.Spec{Name: space, URL: s.URL}
	if s.AuthToken != "" {
		spec.Headers = map[string]string{"Authorization": "Bearer " + s.AuthToken}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep(ctx)
	if _, there := p.used[space]; !there && len(p.used) >= maxPrivate {
		return "", fault.New(fault.Limit, "%d private servers are connected already", len(p.used)).WithHint("try again later")
	}
	if err := p.set.AddPrivate(spec); err != nil {
		return "", err
	}
	p.used[space] = time.Now()
	return space, nil
}

// Unknown returns the namespaces that were not tried yet.
func (p *PrivateServers) Unknown(spaces []string) (unknown []string) {
	for _, space := range spaces {
		if s, ok := p.set.Manager.Status(space); ok && !s.Attempted() {
			unknown = append(unknown, space)
		}
	}
	return unknown
}

// Await waits for an attempt of each, and then lists their tools.
func (p *PrivateServers) Await(ctx context.Context, spaces []string) {
	for _, space := range spaces {
		p.set.AwaitAttempt(ctx, space)
	}
	p.set.Catalog.Refresh(ctx)
}

// sweep removes servers that were not used for privateIdle. p.mu is held.
func (p *PrivateServers) sweep(ctx context.Context) {
	for space, at := range p.used {
		if time.Since(at) > privateIdle {
			_, _ = p.set.Remove(ctx, space) // it never fails
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

// Discover connects and returns the number of tools.
func (p *PrivateServers) Discover(ctx context.Context, owner Person, s Server) (int, error) {
	space := s.ID
	if s.URL != "" {
		var err error
		if space, err = p.Connect(ctx, owner, s); err != nil {
			return 0, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, discoverWait)
	defer cancel()
	p.set.AwaitAttempt(ctx, space)
	status, there := p.set.Status(space) //nolint:contextcheck // it reads what is known, waiting for nothing
	switch {
	case !there:
		return 0, fault.New(fault.NotFound, "no server %q", space)
	case status.State != "connected" && status.State != "asleep":
		return 0, fault.New(fault.Unavailable, "%s: %s", status.State, status.Error)
	}
	return status.Tools, nil
}
