package app

import (
	"encoding/json"
	"net/http"
	"time"
)

// routes is every path the program answers, on one page.
func (h *House) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", h.health)
	return h.telemetry.Handler(mux)
}

// health answers load balancers and people: alive, which version, since when.
func (h *House) health(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{
		"status":      "healthy",
		"version":     h.options.Version,
		"uptime_secs": int64(time.Since(h.started).Seconds()),
	})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone; nobody is left to tell
}
