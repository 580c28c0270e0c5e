// Package health tells load balancers and monitoring how the server is.
package health

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
	"github.com/luanette/luanette/internal/store/db"
)

// probeTimeout limits how long the database may take to respond.
const probeTimeout = 2 * time.Second

// Server answers how the server is.
type Server struct {
	Version       string
	Node          string // its name among those that share a database
	Started       time.Time
	StartupDone   <-chan struct{} // closed when startup.lua has run
	Draining      *atomic.Bool    // it is shutting down
	Store         *db.DB
	Hub           *hub.Hub
	Upstreams     func() []upstreamset.Status
	RestartNeeded func() []string // settings that changed and need a restart
	Operation     func() Operation
}

// Operation is what an operator must look after. Zero values are not shown.
type Operation struct {
	BackupFailed   string // why the latest backup was not made
	LastBackup     time.Time
	AuditWaiting   int64 // entries that are not in the database yet
	CertificateEnd time.Time
}

func (o Operation) fields() map[string]any {
	all := map[string]any{}
	if o.BackupFailed != "" {
		all["backup_failed"] = o.BackupFailed
	}
	if o.AuditWaiting > 0 {
		all["audit_waiting"] = o.AuditWaiting
	}
	for name, at := range map[string]time.Time{"last_backup": o.LastBackup, "certificate_end": o.CertificateEnd} {
		if !at.IsZero() {
			all[name] = at.UTC().Format(time.RFC3339)
		}
	}
	return all
}

// Routes are the paths. They need no scope.
func (s *Server) Routes() []principal.Route {
	return []principal.Route{
		{Pattern: "GET /health", Scope: principal.Open, Guests: true, AnyOrigin: true, Handler: http.HandlerFunc(s.health)},
		{Pattern: "GET /ready", Scope: principal.Open, AnyOrigin: true, Handler: http.HandlerFunc(s.ready)},
	}
}

// upstreamHealth is the state of one upstream.
type upstreamHealth struct {
	State    string   `json:"state"`
	Tools    int      `json:"tools"`
	People   int      `json:"people,omitempty"` // who have a connection of their own
	Error    string   `json:"error,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// health reports version, uptime and the state of the upstreams. An unreachable upstream
// does not make the server unhealthy. One that can write nothing, because the disk is full,
// is degraded and still alive: a restart would not help.
//
// Only callers with the scope read see the details, and guests of a server without keys.
func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	who := principal.Of(r.Context())
	health := map[string]any{"status": "healthy", "version": s.Version}
	ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
	defer cancel()
	if err := s.Store.CheckWritable(ctx); err != nil {
		health["status"], health["problem"] = "degraded", err.Error()
	}
	if !who.May(principal.Read, who.Org) && !who.IsGuest() {
		httpjson.JSON(w, http.StatusOK, health)
		return
	}
	maps.Copy(health, map[string]any{
		"node":        s.Node,
		"uptime_secs": int64(time.Since(s.Started).Seconds()),
		"sessions":    map[string]int{"total": s.Hub.Sessions(), "connected": s.Hub.Connected()},
		"clients":     s.Hub.Clients(),
		"upstreams":   s.upstreams(who),
	})
	if names := s.RestartNeeded(); len(names) > 0 {
		health["restart_needed"] = names
	}
	if who.SeesAll() {
		maps.Copy(health, s.Operation().fields())
	}
	httpjson.JSON(w, http.StatusOK, health)
}

// upstreams returns the state of those that the caller sees, by the names that they have
// for the caller.
func (s *Server) upstreams(who principal.Principal) map[string]upstreamHealth {
	known := map[string]upstreamHealth{}
	for _, u := range s.Upstreams() {
		known[u.Namespace] = upstreamHealth{u.State, u.Tools, u.People, u.Error, u.Warnings}
	}
	visible := map[string]upstreamHealth{}
	for _, space := range who.Visible(slices.Collect(maps.Keys(known))) {
		visible[who.NameOf(space)] = known[space]
	}
	return visible
}

// ready tells load balancers whether to send requests here: 200 if the database responds
// and can be written, else 503 with the reason. During shutdown it answers 503, while
// requests are still served.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if why := s.notReady(r.Context()); why != "" {
		w.Header().Set("Retry-After", "1")
		httpjson.JSON(w, http.StatusServiceUnavailable, map[string]any{"ready": false, "reason": why})
		return
	}
	httpjson.JSON(w, http.StatusOK, map[string]any{"ready": true})
}

// whyUnreadable says why the database does not answer, without addresses and names.
func whyUnreadable(err error) string {
	if f := (*fault.Error)(nil); errors.As(err, &f) && f.Code == fault.Unavailable {
		return f.Msg
	}
	return "the database does not answer: " + string(fault.CodeOf(err))
}

// notReady returns why no request should be sent here, or "". Migrations are done before
// the server listens.
func (s *Server) notReady(ctx context.Context) string {
	if s.Draining.Load() {
		return "draining"
	}
	select {
	case <-s.StartupDone:
	default:
		return "startup.lua is running"
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if err := s.Store.CheckReadable(ctx); err != nil {
		return whyUnreadable(err)
	}
	if err := s.Store.CheckWritable(ctx); err != nil {
		return err.Error()
	}
	return ""
}
