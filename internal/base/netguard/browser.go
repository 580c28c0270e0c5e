package netguard

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

// Browsers decides which requests from browsers are served. A page on the internet can
// make a browser send requests to this machine, under a name that resolves to it. Such
// requests must be refused.
type Browsers struct {
	// Origins are allowed in addition to the server's own and, on loopback, other
	// loopback ones; "*" allows all.
	Origins []string
	// Proxies are trusted reverse proxies. Requests through them may have any Host, since
	// it is the proxy that is reached under it.
	Proxies Proxies
	// PublicURL is the address at which browsers reach the server, if it is known. Its host
	// is one of ours, and https in it means that a proxy in front of the server has TLS.
	PublicURL string
}

// Secure reports whether the browser used TLS: to us, to a trusted proxy, or to whatever
// serves the public address.
func (b Browsers) Secure(r *http.Request) bool {
	return b.Proxies.Secure(r) || strings.HasPrefix(b.PublicURL, "https://") && b.isPublic(r.Host)
}

// isPublic reports whether a host is that of the public address.
func (b Browsers) isPublic(host string) bool {
	u, err := url.Parse(b.PublicURL)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}

// Served reports whether the request's Host is one of ours.
func (b Browsers) Served(r *http.Request) bool {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); !ok || !isLocal(local) {
		return true
	}
	name := hostOf(r.Host)
	return IsLoopback(name) || b.isPublic(r.Host) || b.Proxies.Trusts(r) && Forwarded(r) != ""
}

// Lists reports whether an origin is one of those that are allowed in addition.
func (b Browsers) Lists(origin string) bool {
	return slices.ContainsFunc(b.Origins, func(o string) bool { return o == "*" || strings.EqualFold(o, origin) })
}

// Allowed reports whether pages of an origin may use this server.
func (b Browsers) Allowed(r *http.Request, origin string) bool {
	if b.Lists(origin) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	return strings.EqualFold(u.Host, r.Host) || IsLoopback(u.Hostname()) && IsLoopback(hostOf(r.Host))
}

// Origin returns the origin of the page that made a browser send the request; empty if
// none did. It is an error if the request must be refused: its Host is not one of ours, or it
// comes from a page that may not use this server.
func (b Browsers) Origin(r *http.Request) (string, error) {
	if !b.Served(r) {
		return "", fault.New(fault.Denied, "the Host %q is not this server", r.Host).
			WithHint("use the address on which it listens, such as localhost; behind a reverse proxy, set public_url to the address that people use, or name the proxy in trusted_proxies")
	}
	sent := r.Header["Origin"]
	switch {
	case len(sent) == 0:
		return "", nil
	case len(sent) > 1:
		return "", fault.New(fault.Denied, "the request has %d Origin headers", len(sent)).WithHint("send one or none")
	case sent[0] == "":
		return "", fault.New(fault.Denied, "the Origin header is empty").WithHint("leave it out, or send the page's origin")
	case !b.Allowed(r, sent[0]):
		return "", fault.New(fault.Denied, "the Origin %q is not allowed", sent[0]).
			WithHint("allow the page's origin: mcp.allowed_origins in luanette.toml")
	}
	return sent[0], nil
}

// AnswerPage lets the page of an allowed origin read the response, unless it was requested with
// cookies. It answers the request by which a browser asks before, and reports whether it did.
func AnswerPage(w http.ResponseWriter, r *http.Request, origin string) bool {
	if origin == "" {
		return false
	}
	header := w.Header()
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE, OPTIONS")
	header.Set("Access-Control-Allow-Headers", "*, Authorization")
	header.Set("Access-Control-Expose-Headers", "*")
	header.Add("Vary", "Origin")
	if r.Method != http.MethodOptions {
		return false
	}
	w.WriteHeader(http.StatusNoContent)
	return true
}

// isLocal reports whether an address can be reached from this machine only.
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

// IsLoopback reports whether a host name or address is a loopback one.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
