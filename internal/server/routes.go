package server

import (
	"net/http"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/ui/web"
)

// routes is every path the program answers, with what it takes to be let in.
func (h *House) routes() []principal.Route {
	list := []principal.Route{
		{Pattern: "GET /health", Handler: http.HandlerFunc(h.health)},
		{Pattern: "GET /ready", Handler: http.HandlerFunc(h.ready)},
		{Pattern: "/", Handler: http.HandlerFunc(notFound)},
	}
	list = slices.Concat(list, web.PageRoutes(), h.gate.Routes(), h.hub.Routes(), h.hud.Routes(), h.admin().Routes(), h.loginRoutes(), h.oauthRoutes())
	if h.chat != nil {
		list = append(list, h.chat.Routes()...)
	}
	if h.hoot != nil {
		list = append(list, h.files().Routes()...)
	}
	return list
}

// handler serves them.
func (h *House) handler() http.Handler { return h.telemetry.Handler(h.gate.Mux(h.routes())) }

// health answers load balancers and people: alive, which version, since when,
// and how the servers behind us are doing. An upstream that is away does not make
// us unhealthy: everything else goes on.
//
// How they are doing is told to those who may look on; to others only that we live.
func (h *House) health(w http.ResponseWriter, r *http.Request) {
	if who := principal.Of(r.Context()); !who.May(principal.Read, who.Org) {
		httpjson.JSON(w, http.StatusOK, map[string]any{"status": "healthy", "version": h.options.Version})
		return
	}
	type upstreamHealth struct {
		State string `json:"state"`
		Tools int    `json:"tools"`
		Error string `json:"error,omitempty"`
	}
	behind := map[string]upstreamHealth{}
	for _, s := range h.upstreams.List() { //nolint:contextcheck // it reads what is known, waiting for nothing
		behind[s.Namespace] = upstreamHealth{s.State, s.Tools, s.Error}
	}
	health := map[string]any{
		"status":      "healthy",
		"version":     h.options.Version,
		"uptime_secs": int64(time.Since(h.started).Seconds()),
		"sessions":    map[string]int{"total": h.hub.Sessions(), "connected": h.hub.Connected()},
		"upstreams":   behind,
	}
	if names := h.restartNeeded(); len(names) > 0 {
		health["restart_needed"] = names // for these settings, which were changed
	}
	httpjson.JSON(w, http.StatusOK, health)
}

// notFound answers in JSON, for clients look for authorization servers at many
// places and some give up on anything else.
func notFound(w http.ResponseWriter, r *http.Request) {
	httpjson.JSON(w, http.StatusNotFound, map[string]string{"error": "not_found", "error_description": "nothing is at " + r.URL.Path})
}
