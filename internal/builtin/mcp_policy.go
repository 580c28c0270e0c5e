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

// Policy decides whether a model may connect to a URL. The URL is http, https or
// zmq+tcp, has a host and no credentials. It checks host names only: the addresses
// they resolve to are checked when connecting.
type Policy func(ctx context.Context, u *url.URL) error

// AllowHosts allows loopback with any scheme, and the listed hosts with https only,
// because other schemes are not encrypted. "*" stands for every public host,
// "*.example.org" for the hosts below example.org.
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
				WithHint("the owner of this server can add it to luanette.toml: ZeroMQ connections are not encrypted")
		case u.Scheme != "https":
			return fault.New(fault.Denied, "connect to %s: only https is allowed for this host", host).
				WithHint("use https://%s", u.Host)
		}
		return nil
	}
}

// AllowOrgHosts allows public hosts with https, and those that are listed, to those who
// manage an organisation: this machine and private networks are not theirs.
func AllowOrgHosts(hosts []string) Policy {
	return func(_ context.Context, u *url.URL) error {
		host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
		listed := slices.ContainsFunc(hosts, func(pattern string) bool { return covers(strings.ToLower(pattern), host) })
		switch {
		case u.Scheme != "https" && u.Scheme != "http":
			return fault.New(fault.Denied, "connect to %s: an organisation adds MCP servers over HTTP only", host).
				WithHint("the operators of the server can add others")
		case !listed && !isPublic(host):
			return fault.New(fault.Denied, "connect to %s: it is in a private network", host).
				WithHint("the operators of the server can allow it: mcp.allowed_hosts = [%q] in luanette.toml", host)
		case u.Scheme != "https" && !isLoopback(host):
			return fault.New(fault.Denied, "connect to %s: only https is allowed", host).WithHint("use https://%s", u.Host)
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

// isPublic reports whether a host may be on the public internet: a name with a dot
// that is not a local domain, or a public address.
func isPublic(host string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		return netguard.Public(address)
	}
	local := []string{".localhost", ".local", ".internal", ".lan", ".home.arpa"}
	digits := strings.Trim(host, "0123456789.") == "" // an address in another notation
	return strings.Contains(host, ".") && !digits && !strings.HasPrefix(host, "0x") &&
		!slices.ContainsFunc(local, func(end string) bool { return strings.HasSuffix(host, end) })
}
