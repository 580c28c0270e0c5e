package netguard

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

// Browsers decides which requests may come from a person's browser. A page
// somewhere on the internet can make it send requests to this machine, under a
// name that was made to point here; those must not get through.
type Browsers struct {
	// Origins are allowed besides the server's own and, on loopback, other
	// loopback ones; "*" allows all.
	Origins []string
	// Hosts are names this server may be called by besides loopback ones when it
	// listens on loopback.
	Hosts []string
}

// Served tells whether the request's Host is one of ours.
func (b Browsers) Served(r *http.Request) bool {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); !ok || !isLocal(local) {
		return true
	}
	name := hostOf(r.Host)
	return IsLoopback(name) || slices.ContainsFunc(b.Hosts, func(allowed string) bool {
		return strings.EqualFold(allowed, name) || strings.EqualFold(allowed, r.Host)
	})
}

// Allowed tells whether pages of an origin may use this server.
func (b Browsers) Allowed(r *http.Request, origin string) bool {
	if slices.Contains(b.Origins, "*") || slices.ContainsFunc(b.Origins, func(o string) bool { return strings.EqualFold(o, origin) }) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	return strings.EqualFold(u.Host, r.Host) || IsLoopback(u.Hostname()) && IsLoopback(hostOf(r.Host))
}

// Refusal is why a request is not to be answered, or nil: its Host is not one of
// ours, or a page made it that may not use this server.
func (b Browsers) Refusal(r *http.Request) error {
	origin := r.Header.Get("Origin")
	if b.Served(r) && (origin == "" || b.Allowed(r, origin)) {
		return nil
	}
	return fault.New(fault.Denied, "requests for %q from %q are not answered", r.Host, origin).
		WithHint("allow the page's origin: mcp.allowed_origins in luanette.toml")
}

// isLocal tells whether an address can be reached from this machine only.
func isLocal(a net.Addr) bool {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.IP.IsLoopback()
	}
	return IsLoopback(hostOf(a.String()))
}

func hostOf(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

// IsLoopback tells whether a host name or address is this machine's own.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
