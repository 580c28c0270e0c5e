// Package adminapi is the HTTP API for administrators: definitions of tools to review,
// policy checks, the audit log, upstreams with their tools, and nodes. Tools and scripts cannot call it.
package adminapi

import (
	"context"
	"io"
	"net/http"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/core/principal"
)

// Options are what the API gives access to.
type Options struct {
	Pins      Pins
	Policy    PolicyChecker
	Audit     func() (Audit, error)
	Upstreams Upstreams
	// OrgUpstreams are those that organisations add for themselves.
	OrgUpstreams *OrgUpstreams

	Tools    Tools
	Nodes    func(ctx context.Context) (Nodes, error)
	Learned  Learned
	Egress   Egress
	Sandbox  Sandbox
	Browsers netguard.Browsers // the origins whose pages may call the API
}

// Server answers /api/v1/pins, /api/v1/policy, /api/v1/audit, /api/v1/upstreams,
// /api/v1/tools, /api/v1/nodes and /api/v1/search/learned.
type Server struct {
	options Options
	mux     *http.ServeMux
	routes  []principal.Route
}

// Routes are the server's paths and the scope that each requires.
func (s *Server) Routes() []principal.Route { return s.routes }

// New returns a server.
func New(o Options) *Server {
	s := &Server{options: o, mux: http.NewServeMux()}
	s.adminOnly("GET /api/v1/policy/check", s.checkPolicy)
	s.readers("GET /api/v1/audit", s.listAudit) // own entries; the store decides
	s.adminOnly("GET /api/v1/audit/chains", s.listChains)
	s.adminOnly("GET /api/v1/audit/verify", s.verifyAudit)
	s.adminOnly("GET /api/v1/pins", s.listPins)
	s.adminOnly("POST /api/v1/pins/approve", s.approvePins)
	s.adminOnly("GET /api/v1/pins/{id}", s.showPin)
	s.adminOnly("POST /api/v1/pins/{id}/decide", s.decidePin)
	s.readers("GET /api/v1/upstreams", s.listUpstreams)
	s.readers("GET /api/v1/upstreams/{name}", s.showUpstream)
	s.adminOnly("POST /api/v1/upstreams", s.addUpstream)
	s.adminOnly("PATCH /api/v1/upstreams/{name}", s.editUpstream)
	s.adminOnly("DELETE /api/v1/upstreams/{name}", s.removeUpstream)
	s.action("POST /api/v1/upstreams/{name}/restore", s.restoreUpstream)
	s.action("POST /api/v1/upstreams/{name}/retry", s.retryUpstream)
	s.readers("GET /api/v1/upstreams/{name}/connections", s.listConnections)
	s.readers("GET /api/v1/upstreams/{name}/refusals", s.listRefusals)
	s.action("POST /api/v1/upstreams/{name}/disable", s.disableUpstream)
	s.action("POST /api/v1/upstreams/{name}/restart", s.restartUpstream)
	s.orgRoutes()
	s.readers("GET /api/v1/tools", s.listTools)
	s.adminOnly("PATCH /api/v1/tools/{name}", s.changeTool)
	s.readers("GET /api/v1/nodes", s.listNodes)
	s.route("DELETE /api/v1/search/learned", principal.MCP, s.forgetOwn)
	s.adminOnly("DELETE /api/v1/search/learned/all", s.forgetAll)
	return s
}

// maxBody is the largest request body in bytes.
const maxBody = 64 << 10

// adminOnly adds a route for administrators.
func (s *Server) adminOnly(pattern string, handle func(r *http.Request) (any, error)) {
	s.route(pattern, principal.Admin, handle)
}

// action adds a route for administrators that reads no body.
func (s *Server) action(pattern string, handle func(r *http.Request) (any, error)) {
	s.route(pattern, principal.Admin, handle).Body = principal.NoBody
}

// readers adds a route for keys with the scope read.
func (s *Server) readers(pattern string, handle func(r *http.Request) (any, error)) {
	s.route(pattern, principal.Read, handle)
}

func (s *Server) route(pattern string, scope principal.Scope, handle func(r *http.Request) (any, error)) *principal.Route {
	s.routes = append(s.routes, principal.Route{Pattern: pattern, Scope: scope, Handler: s})
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if who := principal.Of(r.Context()); !who.May(scope, who.Org) {
			writeError(w, fault.New(fault.Denied, "%s lacks the scope %s", who.Title(), scope).WithHint("use a key with the scope %s", scope))
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		body, err := handle(r)
		if err != nil {
			writeError(w, err)
			return
		}
		httpjson.JSON(w, http.StatusOK, body)
	})
	return &s.routes[len(s.routes)-1]
}

// ServeHTTP refuses requests that pages of other origins make in a user's browser.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := s.options.Browsers.Refusal(r); err != nil {
		writeError(w, err)
		return
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	s.mux.ServeHTTP(w, r)
}

// read decodes a request's JSON body.
func read(r *http.Request, into any) error {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return fault.Wrap(fault.InvalidParams, err, "read the request")
	}
	return httpjson.Decode(raw, into)
}

// writeError sends an error in the format that all HTTP endpoints use.
func writeError(w http.ResponseWriter, err error) { httpjson.Error(w, httpjson.StatusOf(err), err) }
