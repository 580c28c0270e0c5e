package servers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/url"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/chat/profile"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
)

// orgUpstreams are the upstreams of the program. Servers of organisations are upstreams like
// others; each of a person has a private namespace, which only that person's chats use.
type orgUpstreams struct {
	orgs  *upstreamset.Orgs
	allow func(ctx context.Context, target *url.URL) error
}

// Connected adds servers to a set of upstreams. allow decides which addresses the operators of
// the server may add.
func Connected(orgs *upstreamset.Orgs, allow func(ctx context.Context, target *url.URL) error) Upstreams {
	return &orgUpstreams{orgs, allow}
}

// CheckURL refuses addresses that the principal of ctx may not add: administrators add those of
// organisations and those that operators add elsewhere.
func (u *orgUpstreams) CheckURL(ctx context.Context, target *url.URL) error {
	err := u.orgs.CheckURL(ctx, target)
	if err != nil && principal.Of(ctx).Admin() {
		return u.allow(ctx, target)
	}
	return err
}

const authorization = "Authorization"

// Put adds or changes an upstream. What an administrator adds for people without an
// organisation is everybody's.
func (u *orgUpstreams) Put(ctx context.Context, org string, s Server) (string, error) {
	change := func(now upstream.Settings) (upstream.Settings, error) {
		now.URL, now.Headers = s.URL, maps.Clone(now.Headers)
		if delete(now.Headers, authorization); s.AuthToken != "" {
			if now.Headers == nil {
				now.Headers = map[string]string{}
			}
			now.Headers[authorization] = "Bearer " + s.AuthToken
		}
		return now, nil
	}
	fresh, _ := change(upstream.Settings{})
	if !principal.Of(ctx).Admin() {
		if s.Space == "" {
			return principal.InOrg(s.ID, org), u.orgs.Add(ctx, org, s.ID, fresh)
		}
		name, _ := principal.SplitNamespace(s.Space)
		return s.Space, u.orgs.Edit(ctx, org, name, change)
	}
	if s.Space != "" {
		return s.Space, u.orgs.Set.EditServer(ctx, s.Space, change)
	}
	space := s.ID
	if org != profile.DefaultOrg {
		if err := principal.CheckOrg(org); err != nil {
			return "", err
		}
		space = principal.InOrg(s.ID, org)
	}
	return space, u.orgs.Set.AddServer(ctx, space, fresh)
}

// Address returns the URL and the token of an upstream that was added.
func (u *orgUpstreams) Address(space string) (address, token string) {
	server, err := u.orgs.Set.Editable(space)
	if err != nil {
		return "", ""
	}
	return server.URL, strings.TrimPrefix(server.Headers[authorization], "Bearer ")
}

// Remove removes an upstream that was added.
func (u *orgUpstreams) Remove(ctx context.Context, org, space string) error {
	if name, _ := principal.SplitNamespace(space); !principal.Of(ctx).Admin() {
		if _, err := u.orgs.Find(org, name); err != nil { //nolint:contextcheck // it only looks at memory
			return err
		}
	}
	_, err := u.orgs.Set.Remove(ctx, space)
	return err
}

// discoverWait is how long servers are waited for that were not tried yet.
const discoverWait = 10 * time.Second

// All lists the upstreams.
func (u *orgUpstreams) All() (list []Server) {
	for _, s := range u.orgs.Set.List() {
		if !upstreamset.IsPrivate(s.Namespace) && s.State != upstreamset.StateRemoved {
			list = append(list, Server{ID: s.Namespace, Name: s.Namespace, Enabled: true, Priority: usualPriority})
		}
	}
	return list
}

// Connect connects a server of a person.
func (u *orgUpstreams) Connect(ctx context.Context, owner profile.Person, s Server) (string, error) {
	spec := upstream.Spec{Name: privateName(owner, s.ID), Settings: upstream.Settings{URL: s.URL}}
	if s.AuthToken != "" {
		spec.Headers = map[string]string{authorization: "Bearer " + s.AuthToken}
	}
	return spec.Name, u.orgs.Set.UsePrivate(spec, time.Now())
}

// privateName derives a namespace from the server's id and its owner. URL and token may change.
// It has the whole id only if that is short: nobody finds another owner with the same name.
func privateName(owner profile.Person, id string) string {
	sum := sha256.Sum256([]byte(owner.Org + "\x00" + owner.User + "\x00" + id))
	return upstreamset.PrivateName(id[:min(len(id), 20)] + "-" + hex.EncodeToString(sum[:16]))
}

// Await waits for an attempt of each that was not tried yet, and then lists their tools.
func (u *orgUpstreams) Await(ctx context.Context, spaces []string, waits func(count int)) {
	var known []upstream.Status
	for _, space := range spaces {
		if s, ok := u.orgs.Set.Manager.Status(space); ok {
			known = append(known, s)
		}
	}
	names, until := untried(known, time.Now())
	if len(names) == 0 {
		return
	}
	waits(len(names))
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	for _, space := range names {
		u.orgs.Set.AwaitAttempt(ctx, space)
	}
	u.orgs.Set.Catalog.Refresh(ctx)
}

// untried returns the upstreams that were not tried yet, and until when they are waited for.
// One that has not answered in that time is away: later messages do not wait for it.
func untried(known []upstream.Status, now time.Time) (names []string, until time.Time) {
	for _, s := range known {
		if end := s.Since.Add(discoverWait); !s.Attempted() && end.After(now) {
			names = append(names, s.Name)
			if end.After(until) {
				until = end
			}
		}
	}
	return names, until
}

// Discover waits for an attempt and returns the names of the tools.
func (u *orgUpstreams) Discover(ctx context.Context, space string) (names []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, discoverWait)
	defer cancel()
	u.orgs.Set.AwaitAttempt(ctx, space)
	status, there := u.orgs.Set.Status(space) //nolint:contextcheck // it reads what is known, waiting for nothing
	switch {
	case !there:
		return nil, fault.New(fault.NotFound, "no server %q", space)
	case status.State != "connected" && status.State != "asleep":
		return nil, fault.New(fault.Unavailable, "%s: %s", status.State, cmp.Or(status.Error, "it has not answered yet"))
	}
	u.orgs.Set.Catalog.Refresh(ctx)
	whole := tool.WithScope(principal.With(ctx, principal.Local()), &tool.Scope{Allows: func(tool.Ref) bool { return true }})
	tools, _ := u.orgs.Set.Catalog.In(whole, space)
	for i := range tools {
		names = append(names, tools[i].Name)
	}
	return names, nil
}
