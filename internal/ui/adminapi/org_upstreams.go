package adminapi

import (
	"context"
	"net/http"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
)

// OrgUpstreams shows and changes the upstreams that organisations add for themselves.
type OrgUpstreams struct {
	UpstreamSet
	orgs *upstreamset.Orgs
}

// NewOrgUpstreams shows and changes upstreams of a set as the organisations may.
func NewOrgUpstreams(set UpstreamSet, orgs *upstreamset.Orgs) *OrgUpstreams {
	set.ofOrg, set.Set, set.Policy = true, orgs.Set, orgs.CheckURL
	return &OrgUpstreams{UpstreamSet: set, orgs: orgs}
}

// list returns the upstreams that were added for an organisation.
func (o *OrgUpstreams) list(ctx context.Context, org string) UpstreamList {
	list := UpstreamList{Node: o.Node, Upstreams: []Upstream{}}
	for _, s := range o.orgs.List(org) { //nolint:contextcheck // it only looks at memory
		list.Upstreams = append(list.Upstreams, o.view(ctx, s))
	}
	return list
}

// add adds an upstream for an organisation.
func (o *OrgUpstreams) add(ctx context.Context, org, name string, want upstream.Change) (Upstream, error) {
	if want["url"] == nil {
		return Upstream{}, fault.New(fault.InvalidParams, "url is missing").
			WithHint("an organisation adds servers by their address; programs on the server's machine are added by its operators")
	}
	server, err := o.changed(ctx, upstream.Settings{}, want)
	if err != nil {
		return Upstream{}, err
	}
	if err := o.orgs.Add(ctx, org, name, server); err != nil {
		return Upstream{}, err
	}
	return o.settled(ctx, principal.InOrg(name, org))
}

// edit changes an upstream that was added for an organisation.
func (o *OrgUpstreams) edit(ctx context.Context, org, name string, want upstream.Change) (Upstream, error) {
	err := o.orgs.Edit(ctx, org, name, func(s upstream.Settings) (upstream.Settings, error) { return o.changed(ctx, s, want) })
	if err != nil {
		return Upstream{}, err
	}
	return o.settled(ctx, principal.InOrg(name, org))
}

// orgRoutes are the routes of upstreams of organisations.
func (s *Server) orgRoutes(route func(pattern string, handle serve) principal.Route) []principal.Route {
	o := s.options.OrgUpstreams
	act := func(pattern string, do func(ctx context.Context, space string) (any, error)) principal.Route {
		return route(pattern, inOrg(func(r *http.Request, org string) (any, error) {
			space, err := o.orgs.Find(org, r.PathValue("name")) //nolint:contextcheck // it only looks at memory
			if err != nil {
				return nil, err
			}
			return do(r.Context(), space)
		})).Reads(principal.NoBody)
	}
	return []principal.Route{
		route("GET /api/v1/orgs/{org}/upstreams", inOrg(func(r *http.Request, org string) (any, error) { return o.list(r.Context(), org), nil })),
		route("POST /api/v1/orgs/{org}/upstreams", inOrg(func(r *http.Request, org string) (any, error) {
			name, settings, err := readChange(r)
			if err != nil {
				return nil, err
			}
			return o.add(r.Context(), org, name, settings)
		})),
		route("PATCH /api/v1/orgs/{org}/upstreams/{name}", inOrg(func(r *http.Request, org string) (any, error) {
			_, change, err := readChange(r)
			if err != nil {
				return nil, err
			}
			return o.edit(r.Context(), org, r.PathValue("name"), change)
		})),
		act("DELETE /api/v1/orgs/{org}/upstreams/{name}", func(ctx context.Context, space string) (any, error) { return o.Remove(ctx, space) }),
		act("POST /api/v1/orgs/{org}/upstreams/{name}/restart", func(ctx context.Context, space string) (any, error) { return o.Restart(ctx, space) }),
		act("POST /api/v1/orgs/{org}/upstreams/{name}/disable", func(ctx context.Context, space string) (any, error) { return o.Disable(ctx, space) }),
		act("POST /api/v1/orgs/{org}/upstreams/{name}/restore", func(ctx context.Context, space string) (any, error) { return o.Restore(ctx, space) }),
	}
}

// inOrg refuses callers who do not manage the organisation of the path.
func inOrg(handle func(r *http.Request, org string) (any, error)) serve {
	return func(r *http.Request) (any, error) {
		org := r.PathValue("org")
		if err := principal.Of(r.Context()).CheckManages(org); err != nil {
			return nil, err
		}
		return handle(r, org)
	}
}
