package server

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamstore"
	"github.com/luanette/luanette/internal/ui/adminapi"
)

// serverRoom is the upstreams as the door for administrators knows them.
type serverRoom struct {
	srv    *Server
	policy builtin.Policy
}

func (r serverRoom) List(ctx context.Context) adminapi.UpstreamList {
	list := adminapi.UpstreamList{Upstreams: []adminapi.Upstream{}}
	if r.srv.node != nil {
		list.Node = r.srv.node.Name()
	}
	who := principal.Of(ctx)
	for _, s := range r.srv.upstreams.List() { //nolint:contextcheck // it reads what is known, waiting for nothing
		if who.CanSee(s.Namespace, "") {
			list.Upstreams = append(list.Upstreams, r.view(ctx, s))
		}
	}
	return list
}

func (r serverRoom) Get(ctx context.Context, name string) (adminapi.Upstream, error) {
	s, ok := r.srv.upstreams.Status(name) //nolint:contextcheck // as above
	if !ok || isPrivateNamespace(name) || !principal.Of(ctx).CanSee(name, "") {
		return adminapi.Upstream{}, fault.New(fault.NotFound, "no upstream %q", name).WithHint("`luanette upstream list` names them")
	}
	return r.view(ctx, s), nil
}

// view is an upstream in full, for those who may know.
func (r serverRoom) view(ctx context.Context, s builtin.UpstreamStatus) adminapi.Upstream {
	v := adminapi.Upstream{UpstreamView: builtin.ViewUpstream(ctx, s, r.srv.catalog), Wanted: s.State != stateRemoved}
	if !principal.Of(ctx).Admin() {
		return v
	}
	v.ConfiguredAt, v.By, v.Changed = s.ConfiguredAt, s.By, s.Changed
	if server, err := r.srv.upstreams.editable(s.Namespace); err == nil && v.Wanted {
		v.Editable = true
		v.Settings = &adminapi.UpstreamSettings{
			URL: upstream.Spec{URL: server.URL}.Target(), Transport: server.Transport, Protocol: server.Protocol,
			Headers: sortedKeys(server.Headers), Expose: exposeOf(server.Expose),
			AllowedTools: orEmpty(server.AllowedTools), DisabledTools: orEmpty(server.DisabledTools),
			ReadOnly: server.ReadOnly, TimeoutMS: server.Timeout.Milliseconds(),
		}
	}
	return v
}

func orEmpty(list []string) []string { return append([]string{}, list...) }

func sortedKeys(m map[string]string) []string { return orEmpty(slices.Sorted(maps.Keys(m))) }

func exposeOf(names []string) adminapi.Expose {
	if slices.Contains(names, config.ExposeAll) {
		return adminapi.Expose{All: true}
	}
	return adminapi.Expose{Names: names}
}

// Add wants a server that was not there.
func (r serverRoom) Add(ctx context.Context, name string, want adminapi.UpstreamChange) (adminapi.Upstream, error) {
	u := r.srv.upstreams
	if want.URL == nil {
		return adminapi.Upstream{}, fault.New(fault.InvalidParams, "url is missing").
			WithHint("servers that are started by a command belong into luanette.toml: luanette upstream add NAME -- COMMAND")
	}
	server, err := r.changed(ctx, name, upstreamstore.Server{}, want)
	if err != nil {
		return adminapi.Upstream{}, err
	}
	u.mu.Lock()
	origin, _ := u.origin(name)
	place := u.places[name]
	u.mu.Unlock()
	switch origin {
	case "":
	case originConfig:
		return adminapi.Upstream{}, configuredFault(name, place).WithHint("choose another name, or change it there")
	default:
		return adminapi.Upstream{}, taken(name)
	}
	u.audit(ctx, "upstream.add", name, []byte(server.URL))
	if err := u.wish(ctx, name, func(now *upstreamstore.Entry) (*upstreamstore.Entry, error) {
		if now != nil && !now.Removed {
			return nil, taken(name)
		}
		return &upstreamstore.Entry{Server: server}, nil
	}); err != nil {
		return adminapi.Upstream{}, err
	}
	return r.settled(ctx, name)
}

func taken(name string) error {
	return fault.New(fault.Conflict, "there is an upstream %s already", name).WithHint("choose another name, or edit that one")
}

// Edit changes a server that was added while running.
func (r serverRoom) Edit(ctx context.Context, name string, want adminapi.UpstreamChange) (adminapi.Upstream, error) {
	u := r.srv.upstreams
	base, err := u.editable(name)
	if err != nil {
		return adminapi.Upstream{}, err
	}
	if _, err := r.changed(ctx, name, base, want); err != nil {
		return adminapi.Upstream{}, err
	}
	u.audit(ctx, "upstream.edit", name, nil)
	if err := u.wish(ctx, name, func(now *upstreamstore.Entry) (*upstreamstore.Entry, error) {
		before := base
		if now != nil && !now.Removed {
			before = now.Server
		}
		server, err := r.changed(ctx, name, before, want)
		return &upstreamstore.Entry{Server: server}, err
	}); err != nil {
		return adminapi.Upstream{}, err
	}
	return r.settled(ctx, name)
}

// editable is what can be changed of a server, or why it cannot.
func (u *upstreams) editable(name string) (upstreamstore.Server, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	origin, _ := u.origin(name)
	switch origin {
	case originConfig:
		return upstreamstore.Server{}, configuredFault(name, u.places[name]).
			WithHint("change it there: the file is watched, and only what changed reconnects")
	case originAdded:
		return u.wishes[name].Server, u.wishes[name].Err
	case originStartup:
		if spec := u.startup[name]; spec.URL != "" {
			return upstreamstore.Server{URL: spec.URL}, nil
		}
		return upstreamstore.Server{}, fault.New(fault.Conflict, "upstream %s is a program that startup.lua starts", name).WithHint("change it there, and restart")
	default:
		return upstreamstore.Server{}, fault.New(fault.NotFound, "no upstream %q", name).WithHint("`luanette upstream list` names them")
	}
}

// changed is a server with what somebody wants of it.
func (r serverRoom) changed(ctx context.Context, name string, s upstreamstore.Server, want adminapi.UpstreamChange) (upstreamstore.Server, error) {
	before := s
	set(&s.Transport, want.Transport)
	set(&s.Protocol, want.Protocol)
	set(&s.AllowedTools, want.AllowedTools)
	set(&s.DisabledTools, want.DisabledTools)
	set(&s.ReadOnly, want.ReadOnly)
	if want.Expose != nil {
		s.Expose = want.Expose.Names
		if want.Expose.All {
			s.Expose = []string{config.ExposeAll}
		}
	}
	if want.TimeoutMS != nil {
		s.Timeout = time.Duration(*want.TimeoutMS) * time.Millisecond
	}
	if want.URL != nil {
		target, err := builtin.Target(ctx, r.policy, *want.URL)
		if err != nil {
			return s, err
		}
		s.URL = target
	}
	headers, err := headersFor(before, s.URL, want.Headers)
	if err != nil {
		return s, err
	}
	s.Headers = headers
	return s, checkAdded(specOf(name, s))
}

func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// headersFor is what a server is sent from now on. What another was sent is not for
// it: it may be a secret between us and that one.
func headersFor(before upstreamstore.Server, address string, want *map[string]*string) (map[string]string, error) {
	same := upstreamstore.SameOrigin(before.URL, address)
	if want == nil {
		if !same && len(before.Headers) > 0 {
			return nil, fault.New(fault.InvalidParams, "headers: those of %s are not sent to another server", originOf(before.URL)).
				WithHint("say which headers the new one is sent; {} for none")
		}
		return before.Headers, nil
	}
	headers := map[string]string{}
	for name, value := range *want {
		if value != nil {
			headers[name] = *value
			continue
		}
		kept, there := before.Headers[name]
		if !there || !same {
			return nil, fault.New(fault.InvalidParams, "headers: there is no value to keep for %s", name).WithHint("give its value")
		}
		headers[name] = kept
	}
	return headers, nil
}

func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the old one"
	}
	return u.Scheme + "://" + u.Host
}

// settleTime is how long somebody who changed an upstream waits to hear how it went.
const settleTime = 2 * time.Second

// settled shows an upstream once it has come to rest, or after a while.
func (r serverRoom) settled(ctx context.Context, name string) (adminapi.Upstream, error) {
	waiting, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	r.srv.upstreams.tried(waiting, name)
	return r.Get(ctx, name)
}

func (r serverRoom) Remove(ctx context.Context, name string) (adminapi.RemovedUpstream, error) {
	before, err := r.Get(ctx, name)
	if err != nil {
		return adminapi.RemovedUpstream{}, err
	}
	removed, err := r.srv.upstreams.Remove(ctx, name)
	return adminapi.RemovedUpstream{Namespace: name, Removed: removed, ConfiguredAt: before.ConfiguredAt}, err
}

func (r serverRoom) Restore(ctx context.Context, name string) (adminapi.Upstream, error) {
	if err := r.srv.upstreams.Restore(ctx, name); err != nil {
		return adminapi.Upstream{}, err
	}
	return r.settled(ctx, name)
}

func (r serverRoom) Retry(ctx context.Context, name string) (adminapi.Upstream, error) {
	if _, err := r.Get(ctx, name); err != nil {
		return adminapi.Upstream{}, err
	}
	r.srv.upstreams.manager.Retry(name)
	return r.settled(ctx, name)
}
