package app

import (
	"net/netip"
	"slices"
	"syscall"

	"github.com/luanette/luanette/internal/fault"
	"github.com/luanette/luanette/internal/inet"
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
		if ip.IsLoopback() || inet.Public(ip) || slices.Contains(allowedHosts, ip.String()) {
			return nil
		}
		return fault.New(fault.Denied, "connect to %s: the address is in a private network", ip).
			WithHint("add the server to luanette.toml, or allow the address: mcp.allowed_hosts = [%q]", ip)
	}
}
