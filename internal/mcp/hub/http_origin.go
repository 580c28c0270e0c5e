package hub

import (
	"net/http"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// guarded refuses requests that a page of another site made a browser send: on a loopback
// address the Host must be a loopback name, and an Origin must be the hub's own or an
// allowed one.
func (h *Hub) guarded(next http.Handler) http.Handler {
	browsers := netguard.Browsers{Origins: h.opts.Origins, Hosts: h.opts.Hosts, Proxies: h.opts.Proxies}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin, err := browsers.Origin(r)
		if err != nil {
			refuse(w, http.StatusForbidden, "", wire.Errorf(wire.CodeInvalidRequest, "%s; %s", err.Error(), fault.HintOf(err)))
			return
		}
		if origin == "" {
			next.ServeHTTP(w, r)
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

// allowCrossOrigin tells a browser what a page of an allowed origin may do.
func allowCrossOrigin(header http.Header, origin string) {
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
	header.Set("Access-Control-Allow-Headers", "*, Authorization")
	header.Set("Access-Control-Expose-Headers", wire.HeaderSession+", "+wire.HeaderRevision)
	header.Add("Vary", "Origin")
}

// principal identifies who made the request.
func (h *Hub) principal(r *http.Request) string {
	if h.opts.Principal == nil {
		return ""
	}
	return h.opts.Principal(r)
}

// wellKnown are the paths where clients look for an authorization server before they
// connect.
var wellKnown = []string{"/.well-known/", "/mcp/.well-known/"}

func noAuthorization(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusNotFound,
		[]byte(`{"error":"not_found","error_description":"This MCP server does not require authentication"}`))
}
