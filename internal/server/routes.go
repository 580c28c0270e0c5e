package server

import (
	"context"
	"net/http"
	"slices"

	"github.com/luanette/luanette/docs"
	"github.com/luanette/luanette/internal/access/jwt"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/builtin/servertools"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/credentials/personal"
	"github.com/luanette/luanette/internal/govern/audit"
	"github.com/luanette/luanette/internal/govern/share"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/ui/adminapi"
	"github.com/luanette/luanette/internal/ui/contents"
	"github.com/luanette/luanette/internal/ui/debug"
	"github.com/luanette/luanette/internal/ui/health"
	"github.com/luanette/luanette/internal/ui/login"
	"github.com/luanette/luanette/internal/ui/manual"
	"github.com/luanette/luanette/internal/ui/web"
)

// routes lists every path that the server serves, with the scope that each requires.
func (srv *Server) routes() []principal.Route {
	list := []principal.Route{{Pattern: "/", Scope: principal.Open, AnyOrigin: true, Body: principal.NoBody, Handler: http.HandlerFunc(notFound)}}
	list = slices.Concat(list, srv.health().Routes(), web.PageRoutes(), manual.New(docs.Files).Routes(), srv.auth.Routes(), srv.people.Routes(), srv.orgs.Routes(), srv.erasure.Routes(),
		share.API{Shares: srv.shares, Audit: srv.audit.RecordAction}.Routes(),
		personal.API{Values: srv.personal, Audit: srv.audit.RecordAction}.Routes(),
		srv.hub.Routes(), srv.dashboard.Routes(), srv.admin().Routes(), srv.setup.Routes(),
		login.Routes(srv.loginService, srv.config.Browsers()), srv.loginService.OwnRoutes(srv.config.Browsers()), srv.oauthRoutes(),
		debug.Routes(), srv.toolsAPI.Routes())
	if srv.chat != nil {
		list = append(append(list, srv.chat.Routes()...), srv.openAI.Routes()...)
	}
	if srv.jobs != nil {
		list = append(list, srv.webhookReceiver().Routes()...)
	}
	library := &contents.Library{Files: srv.contents, Published: srv.scripts.tools, NameOf: srv.shares.NameOf}
	list = append(list, library.Routes()...)
	if srv.localMusic != nil {
		files := contents.New(srv.music(), contents.Options{MaxUpload: int64(srv.config.Music.UploadMB) << 20})
		list = append(list, files.Routes()...)
	}
	if metrics := srv.telemetry.Metrics(); metrics != nil {
		list = append(list, principal.Route{Pattern: "GET /metrics", Write: metrics, Scope: principal.Metrics})
	}
	return list
}

// oauthRoutes publish which issuers' tokens are accepted.
func (srv *Server) oauthRoutes() []principal.Route {
	if srv.tokens == nil {
		return nil
	}
	return []principal.Route{
		{Pattern: jwt.Path, Scope: principal.Open, AnyOrigin: true, Body: principal.NoBody, Handler: srv.tokens},
		{Pattern: jwt.Path + "/mcp", Scope: principal.Open, AnyOrigin: true, Body: principal.NoBody, Handler: srv.tokens},
	}
}

// admin makes the API for administrators.
func (srv *Server) admin() *adminapi.Server {
	return adminapi.New(adminapi.Options{
		Pins: srv.pins, Policy: adminapi.CatalogPolicy{Policy: srv.policy, Catalog: srv.catalog, IsFunction: script.IsFunction}, Audit: srv.auditStore,
		Tools:     adminapi.Tools{Catalog: srv.catalog, Set: srv.upstreams, Configure: srv.setup.SetTools},
		Upstreams: adminapi.UpstreamSet{Set: srv.upstreams, Node: srv.node.Name(), Counts: srv.catalog, Policy: servertools.AllowHosts(srv.config.MCP.AllowedHosts), Elsewhere: srv.restartElsewhere},
		Nodes:     srv.nodes, Learned: srv.usage, Egress: srv.egress, Sandbox: srv.sandbox,
		OrgUpstreams: adminapi.NewOrgUpstreams(adminapi.UpstreamSet{Node: srv.node.Name(), Counts: srv.catalog}, srv.orgUpstreams()),
	})
}

// auditStore returns the audit log for reading.
func (srv *Server) auditStore() (adminapi.Audit, error) {
	if srv.audit != nil {
		return srv.audit, nil
	}
	return audit.OpenStore(context.Background(), srv.store)
}

// health tells load balancers and monitoring how the server is.
func (srv *Server) health() *health.Server {
	return &health.Server{
		Version: srv.options.Version, Node: srv.node.Name(), Started: srv.started, StartupDone: srv.settled, Draining: &srv.draining, Store: srv.store, Hub: srv.hub,
		Upstreams: srv.upstreams.List, RestartNeeded: srv.restartNeeded, Operation: srv.operation,
	}
}

// handler serves them.
func (srv *Server) handler() http.Handler {
	return srv.config.Browsers().AtBase(srv.telemetry.Handler(srv.auth.Mux(srv.routes())))
}

// notFound answers in JSON: clients look for authorization servers at many paths, and
// some fail on other content types.
func notFound(w http.ResponseWriter, r *http.Request) {
	httpjson.JSON(w, http.StatusNotFound, map[string]string{"error": "not_found", "error_description": "nothing is at " + r.URL.Path})
}
