package hub

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/wire"
)

// guarded lets only requests through that a person's browser was not tricked
// into: on a loopback address the Host must be one, and an Origin must be the
// hub's own or an allowed one.
func (h *Hub) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.hostAllowed(r) {
			refuse(w, http.StatusForbidden, "", wire.Errorf(wire.CodeInvalidRequest, "Host %q is not served here", r.Host))
			return
		}
		origin := r.Header.Get("Origin")
		if origin == "" {
			next.ServeHTTP(w, r)
			return
		}
		if !h.originAllowed(r, origin) {
			refuse(w, http.StatusForbidden, "", wire.Errorf(wire.CodeInvalidRequest, "Origin %q is not allowed", origin))
			return
		}
		allowCrossOrigin(w.Header(), origin)
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// hostAllowed guards against names that were made to point to this machine.
func (h *Hub) hostAllowed(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || !isLoopback(hostOf(local.String())) {
		return true
	}
	name := hostOf(r.Host)
	return isLoopback(name) || slices.ContainsFunc(h.opts.Hosts, func(allowed string) bool {
		return strings.EqualFold(allowed, name) || strings.EqualFold(allowed, r.Host)
	})
}

func (h *Hub) originAllowed(r *http.Request, origin string) bool {
	if slices.Contains(h.opts.Origins, "*") || slices.ContainsFunc(h.opts.Origins, func(o string) bool { return strings.EqualFold(o, origin) }) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	return strings.EqualFold(u.Host, r.Host) || isLoopback(u.Hostname()) && isLoopback(hostOf(r.Host))
}

func hostOf(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// allowCrossOrigin tells a browser what a page of an allowed origin may do.
func allowCrossOrigin(header http.Header, origin string) {
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
	header.Set("Access-Control-Allow-Headers", "*, Authorization")
	header.Set("Access-Control-Expose-Headers", wire.HeaderSession+", "+wire.HeaderRevision)
	header.Add("Vary", "Origin")
}

// principal is who made the request.
func (h *Hub) principal(r *http.Request) string {
	if h.opts.Principal == nil {
		return ""
	}
	return h.opts.Principal(r)
}

// wellKnown are the places where clients look for an authorization server before
// they dare to connect.
var wellKnown = []string{"/.well-known/", "/mcp/.well-known/"}

func noAuthorization(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusNotFound,
		[]byte(`{"error":"not_found","error_description":"This MCP server does not require authentication"}`))
}
