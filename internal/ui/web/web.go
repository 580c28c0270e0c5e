// Package web serves the web page, the stream of events, recent traces and the
// configuration. The web page and the terminal dashboard read these; they call tools
// as MCP clients.
package web

import (
	"bytes"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/observe/history"
	"github.com/luanette/luanette/internal/observe/telemetry"
)

// Options are what the server shows and to whom.
type Options struct {
	Bus     *event.Bus
	Traces  *telemetry.Traces // nil: traces are not stored
	Calls   *history.Calls    // what /api/v1/calls reports
	Process string            // unique id of this process, part of each event id; optional
	// Config writes the effective configuration as somebody may see it, without secrets.
	Config func(to principal.Principal, w io.Writer) error
	// OnFirstReader is called when the number of event readers rises from 0 to 1; optional.
	OnFirstReader func()
	// Keepalive is how long a stream may be silent before it sends a comment; zero
	// means 15 s.
	Keepalive time.Duration
}

// Server answers /api/v1/events, /api/v1/calls, /api/v1/traces and /api/v1/config. Streams end with
// their requests' contexts.
type Server struct {
	options Options
	readers atomic.Int64 // open event streams
}

// HasReaders reports whether any event stream is open.
func (s *Server) HasReaders() bool { return s.readers.Load() > 0 }

// Readers is the number of open event streams.
func (s *Server) Readers() int64 { return s.readers.Load() }

// New returns a server.
func New(o Options) *Server {
	if o.Keepalive <= 0 {
		o.Keepalive = 15 * time.Second
	}
	return &Server{options: o}
}

// Routes are the server's paths and the scope that each requires.
func (s *Server) Routes() []principal.Route {
	route := func(pattern string, serve func(http.ResponseWriter, *http.Request) error) principal.Route {
		return principal.Route{Pattern: pattern, Scope: principal.Read, Write: serve}
	}
	return []principal.Route{
		route("GET /api/v1/events", s.events),
		route("GET /api/v1/calls", compressed(s.calls)),
		route("GET /api/v1/traces", compressed(s.traces)),
		route("GET /api/v1/traces/{id}", compressed(s.trace)),
		route("GET /api/v1/config", compressed(s.config)),
	}
}

// config writes the configuration as a luanette.toml.
func (s *Server) config(w http.ResponseWriter, r *http.Request) error {
	var text bytes.Buffer
	if err := s.options.Config(principal.Of(r.Context()), &text); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = text.WriteTo(w) // the client may have disconnected
	return nil
}
