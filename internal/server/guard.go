package server

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard"
	"github.com/luanette/luanette/internal/config"
)

// outward is where others may have us connect to: models, scripts, chats, and what
// servers say of themselves. The public internet is open to them, and what is
// allowed by its address.
type outward struct {
	allowed  []string // addresses, and hosts, which are nothing to it but for localhost
	loopback bool     // this machine is open, too
}

// outward says so for those who can reach us. Who reaches us from this machine
// only is its owner, and has servers of his own on it; others have none.
func (srv *Server) outward() outward {
	allowed := srv.config.MCP.AllowedHosts
	return outward{allowed: allowed, loopback: config.ListensLocally(srv.config.Listen) || slices.Contains(allowed, "localhost")}
}

// control refuses addresses, whatever name led there: it is asked after names were
// resolved, so that a name which changes its address between check and use gains
// nothing. See net.Dialer.Control.
func (o outward) control(_, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return fault.New(fault.Denied, "connect to %s: not an address", address)
	}
	ip := target.Addr().Unmap()
	switch {
	case netguard.Public(ip), slices.Contains(o.allowed, ip.String()), ip.IsLoopback() && o.loopback:
		return nil
	case ip.IsLoopback():
		return fault.New(fault.Denied, "connect to %s: others can reach this server, so they may not reach this machine through it", ip).
			WithHint("add the server to luanette.toml, or allow this machine: mcp.allowed_hosts = [\"localhost\"]")
	}
	return fault.New(fault.Denied, "connect to %s: the address is in a private network", ip).
		WithHint("add the server to luanette.toml, or allow the address: mcp.allowed_hosts = [%q]", ip)
}

// transport makes requests there, and through no proxy: it would look up names
// after us.
func (o outward) transport() http.RoundTripper {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	transport.DialContext = (&net.Dialer{Timeout: 5 * time.Second, Control: o.control}).DialContext
	return transport
}
