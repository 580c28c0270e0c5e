// Package adminapi is the door for those who run the house: what upstreams say of
// their tools, to be approved or refused, what the policy says, and who did what.
// It takes an administrator's key; neither tools nor scripts come in here.
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

// Options are the rooms behind the door.
type Options struct {
	Pins      Pins
	Policy    func(ctx context.Context, tool, key string) (PolicyCheck, error)
	Audit     func() (Audit, error)
	Upstreams Upstreams
	Nodes     func(ctx context.Context) (Nodes, error)
	Browsers  netguard.Browsers // whose pages may come in
}

// Server answers /api/v1/pins, /api/v1/policy, /api/v1/audit, /api/v1/upstreams and
// /api/v1/nodes.
type Server struct {
	options Options
	mux     *http.ServeMux
	routes  []principal.Route
}

// Routes are the paths of this door, with what each needs.
func (d *Server) Routes() []principal.Route { return d.routes }

// New makes the door.
func New(o Options) *Server {
	d := &Server{options: o, mux: http.NewServeMux()}
	d.adminOnly("GET /api/v1/policy/check", d.checkPolicy)
	d.adminOnly("GET /api/v1/audit", d.listAudit)
	d.adminOnly("GET /api/v1/audit/chains", d.listChains)
	d.adminOnly("GET /api/v1/audit/verify", d.verifyAudit)
	d.adminOnly("GET /api/v1/pins", d.listPins)
	d.adminOnly("POST /api/v1/pins/approve", d.approvePins)
	d.adminOnly("GET /api/v1/pins/{id}", d.showPin)
	d.adminOnly("POST /api/v1/pins/{id}/decide", d.decidePin)
	d.readers("GET /api/v1/upstreams", d.listUpstreams)
	d.readers("GET /api/v1/upstreams/{name}", d.showUpstream)
	d.adminOnly("POST /api/v1/upstreams", d.addUpstream)
	d.adminOnly("PATCH /api/v1/upstreams/{name}", d.editUpstream)
	d.adminOnly("DELETE /api/v1/upstreams/{name}", d.removeUpstream)
	d.adminOnly("POST /api/v1/upstreams/{name}/restore", d.restoreUpstream)
	d.adminOnly("POST /api/v1/upstreams/{name}/retry", d.retryUpstream)
	d.readers("GET /api/v1/nodes", d.listNodes)
	return d
}

// maxBody is how much a request may say.
const maxBody = 64 << 10

// adminOnly has a path answered with JSON, for administrators only.
func (d *Server) adminOnly(pattern string, answer func(r *http.Request) (any, error)) {
	d.route(pattern, principal.Admin, answer)
}

// readers has a path answered for whoever may look on.
func (d *Server) readers(pattern string, answer func(r *http.Request) (any, error)) {
	d.route(pattern, principal.Read, answer)
}

func (d *Server) route(pattern string, scope principal.Scope, find func(r *http.Request) (any, error)) {
	d.routes = append(d.routes, principal.Route{Pattern: pattern, Scope: scope, Handler: d})
	d.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if who := principal.Of(r.Context()); !who.May(scope, who.Org) {
			writeError(w, fault.New(fault.Denied, "this is not for %s", who.Title()).WithHint("it takes a key with the scope %s", scope))
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		body, err := find(r)
		if err != nil {
			writeError(w, err)
			return
		}
		httpjson.JSON(w, http.StatusOK, body)
	})
}

// ServeHTTP turns away requests that a person's browser was tricked into.
func (d *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := d.options.Browsers.Refusal(r); err != nil {
		writeError(w, err)
		return
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	d.mux.ServeHTTP(w, r)
}

// parseEvent takes a request's body.
func read(r *http.Request, into any) error {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return fault.Wrap(fault.InvalidParams, err, "read the request")
	}
	return httpjson.Decode(raw, into)
}

// statuses are what faults are in HTTP.
var statuses = map[fault.Code]int{
	fault.InvalidParams: http.StatusBadRequest, fault.NotFound: http.StatusNotFound, fault.Conflict: http.StatusConflict,
	fault.Denied: http.StatusForbidden, fault.Config: http.StatusConflict, fault.NeedsAuth: http.StatusUnauthorized, fault.Unavailable: http.StatusServiceUnavailable,
}

// writeError answers with an error as all our HTTP doors word it.
func writeError(w http.ResponseWriter, err error) {
	status, ok := statuses[fault.CodeOf(err)]
	if !ok {
		status = http.StatusInternalServerError
	}
	httpjson.Error(w, status, err)
}
