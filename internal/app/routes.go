package app

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/luanette/luanette/internal/hud"
)

// routes is every path the program answers, on one page.
func (h *House) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", h.health)
	mux.HandleFunc("GET /ready", h.ready)
	mcp := h.hub.Handler()
	mux.Handle("/mcp", mcp)
	mux.Handle("/mcp/", mcp)
	mux.Handle("/.well-known/", mcp)
	page := hud.Page()
	for _, path := range []string{"GET /{$}", "GET /icon.svg", "GET /assets/"} {
		mux.Handle(path, page)
	}
	if h.chat != nil {
		mux.Handle("/api/v1/", h.chat.Handler())
	}
	watch := h.hud.Handler()
	mux.Handle("/api/v1/config", watch)
	mux.Handle("/api/v1/events", watch)
	mux.Handle("/api/v1/traces", watch)
	mux.Handle("/api/v1/traces/", watch)
	mux.Handle("/api/v1/pins", h.admin())
	mux.Handle("/api/v1/pins/", h.admin())
	if h.hoot != nil {
		kept := h.files().Handler()
		mux.Handle("/artifact/", kept)
		mux.Handle("/artifacts", kept)
		mux.Handle("/cas", kept)
		mux.Handle("/cas/", kept)
	}
	mux.HandleFunc("/", notFound)
	return h.telemetry.Handler(mux)
}

// health answers load balancers and people: alive, which version, since when,
// and how the servers behind us are doing. An upstream that is away does not make
// us unhealthy: everything else goes on.
func (h *House) health(w http.ResponseWriter, _ *http.Request) {
	type upstreamHealth struct {
		State string `json:"state"`
		Tools int    `json:"tools"`
		Error string `json:"error,omitempty"`
	}
	behind := map[string]upstreamHealth{}
	for _, s := range h.upstreams.List() { //nolint:contextcheck // it reads what is known, waiting for nothing
		behind[s.Namespace] = upstreamHealth{s.State, s.Tools, s.Error}
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"status":      "healthy",
		"version":     h.options.Version,
		"uptime_secs": int64(time.Since(h.started).Seconds()),
		"sessions":    map[string]int{"total": h.hub.Sessions(), "connected": h.hub.Connected()},
		"upstreams":   behind,
	})
}

// notFound answers in JSON, for clients look for authorization servers at many
// places and some give up on anything else.
func notFound(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusNotFound, map[string]string{"error": "not_found", "error_description": "nothing is at " + r.URL.Path})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone; nobody is left to tell
}
