// Package web is the door for those who watch: the stream of everything that
// happens, and the latest traces. The web page and the terminal dashboard are its
// guests; what they do, they do as MCP clients through the hub.
package web

import (
	"bytes"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/observe/telemetry"
)

// Options are what there is to watch.
type Options struct {
	Bus      *event.Bus
	Traces   *telemetry.Traces // nil: none are kept
	Browsers netguard.Browsers // whose pages may watch
	Process  string            // one of a kind: whose numbers events have; "" is the only one there ever is
	// Config writes the configuration that holds, without secrets.
	Config func(io.Writer) error
	// OnFirstReader is called when somebody begins to look on, and nobody did before; nil is
	// nobody's business.
	OnFirstReader func()
	// Keepalive is the silence after which a stream says that it still lives;
	// zero means 15 s.
	Keepalive time.Duration
}

// Server answers the paths under /api/v1/events, /api/v1/traces and /api/v1/config. Streams end with
// their requests' contexts.
type Server struct {
	options Options
	readers atomic.Int64 // who looks on now
}

// HasReaders tells whether somebody looks on.
func (h *Server) HasReaders() bool { return h.readers.Load() > 0 }

// Readers is how many look on.
func (h *Server) Readers() int64 { return h.readers.Load() }

// New makes the door.
func New(o Options) *Server {
	if o.Keepalive <= 0 {
		o.Keepalive = 15 * time.Second
	}
	return &Server{options: o}
}

// Routes are the paths of this door, with what each needs.
func (h *Server) Routes() []principal.Route {
	route := func(pattern string, serve http.HandlerFunc) principal.Route {
		return principal.Route{Pattern: pattern, Scope: principal.Read, Handler: h.checkOrigin(serve)}
	}
	return []principal.Route{
		route("GET /api/v1/events", h.events),
		route("GET /api/v1/traces", h.traces),
		route("GET /api/v1/traces/{id}", h.trace),
		route("GET /api/v1/config", h.config),
	}
}

// config shows the configuration as a luanette.toml.
func (h *Server) config(w http.ResponseWriter, _ *http.Request) {
	var text bytes.Buffer
	if err := h.options.Config(&text); err != nil {
		httpjson.Error(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = text.WriteTo(w) // the client may be gone; nobody is left to tell
}

// checkOrigin turns away requests that a person's browser was tricked into.
func (h *Server) checkOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h.options.Browsers.Refusal(r); err != nil {
			httpjson.Error(w, http.StatusForbidden, err)
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}
