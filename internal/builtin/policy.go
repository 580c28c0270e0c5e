package builtin

import (
	"context"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
)

// Policy decides whether a URL may be connected to at the wish of a model. The
// URL is http, https or zmq+tcp, has a host and no credentials. It sees names only: who
// connects checks the addresses they lead to.
type Policy func(ctx context.Context, u *url.URL) error

// AllowHosts allows loopback by any of them, and the listed hosts by https
// only, since nothing else keeps what is said from others. A listed "*" stands for every public host, "*.example.org" for those
// below example.org.
func AllowHosts(hosts []string) Policy {
	return func(_ context.Context, u *url.URL) error {
		host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
		switch {
		case isLoopback(host):
			return nil
		case !slices.ContainsFunc(hosts, func(pattern string) bool { return covers(strings.ToLower(pattern), host) }):
			return fault.New(fault.Denied, "connect to %s: the host is not allowed", host).
				WithHint("the owner of this server can allow it: mcp.allowed_hosts = [%q] in luanette.toml", host)
		case u.Scheme == "zmq+tcp":
			return fault.New(fault.Denied, "connect to %s: only backends on this machine are allowed here", host).
				WithHint("the owner of this server can add it to luanette.toml: nothing protects what is said over ZeroMQ")
		case u.Scheme != "https":
			return fault.New(fault.Denied, "connect to %s: only https is allowed there", host).
				WithHint("use https://%s", u.Host)
		}
		return nil
	}
}

func covers(pattern, host string) bool {
	if pattern == "*" {
		return isPublic(host)
	}
	if suffix, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasPrefix(suffix, ".") && strings.HasSuffix(host, suffix)
	}
	return pattern == host
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// isPublic tells whether a host may be one of the public internet: a name with a
// dot that is not of a local kind, or a public address.
func isPublic(host string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		return netguard.Public(address)
	}
	local := []string{".localhost", ".local", ".internal", ".lan", ".home.arpa"}
	digits := strings.Trim(host, "0123456789.") == "" // an address in a disguise
	return strings.Contains(host, ".") && !digits && !strings.HasPrefix(host, "0x") &&
		!slices.ContainsFunc(local, func(end string) bool { return strings.HasSuffix(host, end) })
}
