package adminapi

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
)

// OrgUpstreams lets those who manage an organisation add and remove upstreams of its own:
// MCP servers over HTTP that are not in private networks. They reach no other upstream: not
// the server's, not those that the configuration gives to the organisation, and not those
// of other organisations.
type OrgUpstreams struct {
	UpstreamSet
	most   func(org string) int // how many an organisation may have
	adding sync.Mutex           // so that two requests do not exceed that together
}

// NewOrgUpstreams lets organisations add upstreams to a set, so many each. The set's Policy
// decides which addresses.
func NewOrgUpstreams(set UpstreamSet, most func(org string) int) *OrgUpstreams {
	set.guarded = true
	return &OrgUpstreams{UpstreamSet: set, most: most}
}

// orgTransports are those of MCP over HTTP.
var orgTransports = []string{"", "auto", "http", "sse"}

var upstreamName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`) })

// own are the upstreams that were added for an organisation.
func (o *OrgUpstreams) own(org string) []upstreamset.Status {
	return slices.DeleteFunc(o.Set.List(), func(s upstreamset.Status) bool {
		_, of := principal.SplitNamespace(s.Namespace)
		return of != org || s.Origin != upstreamset.OriginAdded
	})
}

// find returns the namespace of an upstream that was added for an organisation.
func (o *OrgUpstreams) find(org, name string) (string, error) {
	space := principal.InOrg(name, org)
	if !upstreamName().MatchString(name) || !slices.ContainsFunc(o.own(org), func(s upstreamset.Status) bool { return s.Namespace == space }) {
		return "", fault.New(fault.NotFound, "the organisation %s has added no upstream %q", org, name).
			WithHint("upstreams of luanette.toml are changed by the operators of the server")
	}
	return space, nil
}

// list returns the upstreams that were added for an organisation.
func (o *OrgUpstreams) list(ctx context.Context, org string) UpstreamList {
	list := UpstreamList{Node: o.Node, Upstreams: []Upstream{}}
	for _, s := range o.own(org) { //nolint:contextcheck // it only looks at memory
		list.Upstreams = append(list.Upstreams, o.view(ctx, s))
	}
	return list
}

// add adds an upstream for an organisation.
func (o *OrgUpstreams) add(ctx context.Context, org, name string, want UpstreamChange) (Upstream, error) {
	switch {
	case !upstreamName().MatchString(name):
		return Upstream{}, fault.New(fault.InvalidParams, "namespace %q is not a valid name", name).
			WithHint("use a letter, then at most 63 letters, digits, _ or -, without the organisation")
	case want.URL == nil:
		return Upstream{}, fault.New(fault.InvalidParams, "url is missing").
			WithHint("an organisation adds servers by their address; programs on the server's machine are added by its operators")
	case want.Transport != nil && !slices.Contains(orgTransports, *want.Transport):
		return Upstream{}, fault.New(fault.Denied, "an organisation adds MCP servers over HTTP, not %s", *want.Transport).
			WithHint("the operators of the server can add it")
	}
	o.adding.Lock()
	defer o.adding.Unlock()
	if most := o.most(org); len(o.own(org)) >= most { //nolint:contextcheck // it only looks at memory
		return Upstream{}, fault.New(fault.Limit, "the organisation %s may add %d upstreams", org, most).
			WithHint("remove one; the operators of the server set orgs.%s.max_upstreams", org)
	}
	return o.Add(ctx, principal.InOrg(name, org), want)
}

// orgRoutes adds the routes of upstreams of organisations.
func (s *Server) orgRoutes() {
	s.route("GET /api/v1/orgs/{org}/upstreams", principal.Org, inOrg(func(r *http.Request, org string) (any, error) {
		return s.options.OrgUpstreams.list(r.Context(), org), nil
	}))
	s.route("POST /api/v1/orgs/{org}/upstreams", principal.Org, inOrg(func(r *http.Request, org string) (any, error) {
		var body struct {
			Namespace string `json:"namespace"`
			UpstreamChange
		}
		if err := read(r, &body); err != nil {
			return nil, err
		}
		return s.options.OrgUpstreams.add(r.Context(), org, body.Namespace, body.UpstreamChange)
	}))
	o := s.options.OrgUpstreams
	s.orgAction("DELETE /api/v1/orgs/{org}/upstreams/{name}", func(ctx context.Context, space string) (any, error) { return o.Remove(ctx, space) })
	s.orgAction("POST /api/v1/orgs/{org}/upstreams/{name}/restart", func(ctx context.Context, space string) (any, error) { return o.Restart(ctx, space) })
	s.orgAction("POST /api/v1/orgs/{org}/upstreams/{name}/disable", func(ctx context.Context, space string) (any, error) { return o.Disable(ctx, space) })
	s.orgAction("POST /api/v1/orgs/{org}/upstreams/{name}/restore", func(ctx context.Context, space string) (any, error) { return o.Restore(ctx, space) })
}

// orgAction adds a route that does something with one upstream of an organisation.
func (s *Server) orgAction(pattern string, act func(ctx context.Context, space string) (any, error)) {
	s.route(pattern, principal.Org, inOrg(func(r *http.Request, org string) (any, error) {
		space, err := s.options.OrgUpstreams.find(org, r.PathValue("name")) //nolint:contextcheck // it only looks at memory
		if err != nil {
			return nil, err
		}
		return act(r.Context(), space)
	}))
}

// inOrg refuses callers who do not manage the organisation of the path.
func inOrg(handle func(r *http.Request, org string) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		org := r.PathValue("org")
		if err := principal.CheckOrg(org); err != nil {
			return nil, err
		}
		if who := principal.Of(r.Context()); !who.May(principal.Org, org) {
			return nil, fault.New(fault.Denied, "%s does not manage the organisation %s", who.Title(), org).WithHint("use a key of that organisation with the scope org")
		}
		return handle(r, org)
	}
}
