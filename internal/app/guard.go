package app

import (
	"net/netip"
	"slices"
	"syscall"

	"github.com/luanette/luanette/internal/fault"
)

// dialGuard refuses addresses that a model or a script must not reach, whatever
// name led there: it is asked after names were resolved, so that a name which
// changes its address between check and use gains nothing. Loopback stays open,
// for that is where people run their own servers.
func dialGuard(allowedHosts []string) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		target, err := netip.ParseAddrPort(address)
		if err != nil {
			return fault.New(fault.Denied, "connect to %s: not an address", address)
		}
		ip := target.Addr().Unmap()
		if ip.IsLoopback() || isPublicAddress(ip) || slices.Contains(allowedHosts, ip.String()) {
			return nil
		}
		return fault.New(fault.Denied, "connect to %s: the address is in a private network", ip).
			WithHint("add the server to luanette.toml, or allow the address: mcp.allowed_hosts = [%q]", ip)
	}
}

// isPublicAddress tells whether an address is one of the public internet.
func isPublicAddress(ip netip.Addr) bool {
	return ip.IsGlobalUnicast() && !ip.IsPrivate() &&
		!slices.ContainsFunc(reservedNetworks, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// reservedNetworks are global unicast by their bits but nobody's public server:
// carriers' networks, this network, benchmarks, documentation, and IPv4 in
// disguise.
var reservedNetworks = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("2002::/16"),
}
