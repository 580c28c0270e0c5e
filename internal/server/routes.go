package server

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/access/personal"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/ui/contents"
	"github.com/luanette/luanette/internal/ui/debug"
	"github.com/luanette/luanette/internal/ui/login"
	"github.com/luanette/luanette/internal/ui/toolsapi"
	"github.com/luanette/luanette/internal/ui/web"
)

// routes lists every path that the server serves, with the scope that each requires.
func (srv *Server) routes() []principal.Route {
	list := []principal.Route{
		{Pattern: "GET /health", Handler: http.HandlerFunc(srv.health)},
		{Pattern: "GET /ready", Handler: http.HandlerFunc(srv.ready)},
		{Pattern: "/", Handler: http.HandlerFunc(notFound)},
	}
	list = slices.Concat(list, web.PageRoutes(), srv.auth.Routes(), srv.people.Routes(), srv.orgs.Routes(), srv.erasure.Routes(),
		personal.API{Values: srv.personal, Browsers: srv.config.Browsers(), Audit: srv.auditAdmin}.Routes(),
		srv.hub.Routes(), srv.dashboard.Routes(), srv.admin().Routes(), srv.setup.Routes(),
		login.Routes(srv.loginService, srv.config.Browsers()), srv.loginService.OwnRoutes(srv.config.Browsers()), srv.oauthRoutes(),
		debug.Routes(srv.config.Browsers()), srv.toolsAPI().Routes())
	if srv.chat != nil {
		list = append(append(list, srv.chat.Routes()...), srv.openAI.Routes()...)
	}
	if srv.jobs != nil {
		list = append(list, srv.webhookReceiver().Routes()...)
	}
	if srv.scripts != nil {
		library := &contents.Library{Files: srv.contents, Browsers: srv.config.Browsers(), Published: srv.scripts.tools}
		list = append(list, library.Routes()...)
	}
	if srv.localMusic != nil {
		list = append(list, srv.files().Routes()...)
	}
	if metrics := srv.telemetry.Metrics(srv.config.Browsers().Refusal); metrics != nil {
		list = append(list, principal.Route{Pattern: "GET /metrics", Handler: metrics, Scope: principal.Metrics})
	}
	return list
}

// toolsAPI serves tools to programs that do not speak MCP.
func (srv *Server) toolsAPI() *toolsapi.Server {
	return toolsapi.New(toolsapi.Options{
		Tools: srv.catalog, Version: srv.options.Version, Browsers: srv.config.Browsers(), KeyRequired: srv.auth.KeyRequired, Caller: caller,
	})
}

// handler serves them.
func (srv *Server) handler() http.Handler { return srv.telemetry.Handler(srv.auth.Mux(srv.routes())) }

// health reports version, uptime and the state of the upstreams. An unreachable upstream
// does not make the server unhealthy.
//
// Only callers with the scope read see the details.
func (srv *Server) health(w http.ResponseWriter, r *http.Request) {
	who := principal.Of(r.Context())
	if !who.May(principal.Read, who.Org) {
		httpjson.JSON(w, http.StatusOK, map[string]any{"status": "healthy", "version": srv.options.Version})
		return
	}
	type upstreamHealth struct {
		State    string   `json:"state"`
		Tools    int      `json:"tools"`
		People   int      `json:"people,omitempty"` // who have a connection of their own
		Error    string   `json:"error,omitempty"`
		Warnings []string `json:"warnings,omitempty"`
	}
	known := map[string]upstreamHealth{}
	for _, s := range srv.upstreams.List() { //nolint:contextcheck // it reads what is known, waiting for nothing
		known[s.Namespace] = upstreamHealth{s.State, s.Tools, s.People, s.Error, s.Warnings}
	}
	behind := map[string]upstreamHealth{}
	for _, space := range who.Visible(slices.Collect(maps.Keys(known))) {
		behind[who.NameOf(space)] = known[space]
	}
	health := map[string]any{
		"status":      "healthy",
		"version":     srv.options.Version,
		"uptime_secs": int64(time.Since(srv.started).Seconds()),
		"sessions":    map[string]int{"total": srv.hub.Sessions(), "connected": srv.hub.Connected()},
		"clients":     srv.hub.Clients(),
		"upstreams":   behind,
	}
	if names := srv.restartNeeded(); len(names) > 0 {
		health["restart_needed"] = names // settings that changed and need a restart
	}
	httpjson.JSON(w, http.StatusOK, health)
}

// notFound answers in JSON: clients look for authorization servers at many paths, and
// some fail on other content types.
func notFound(w http.ResponseWriter, r *http.Request) {
	httpjson.JSON(w, http.StatusNotFound, map[string]string{"error": "not_found", "error_description": "nothing is at " + r.URL.Path})
}
