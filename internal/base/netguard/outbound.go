package netguard

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// Outbound decides which addresses others may make the server connect to: models,
// scripts, chats, and upstreams that refer to other servers. The public internet is
// always allowed.
type Outbound struct {
	Allowed  []string      // further addresses
	Loopback bool          // this machine is allowed too
	Resolver *net.Resolver // of names; nil: the machine's
	Proxy    ProxyFunc     // nil: none
}

// Control is a net.Dialer.Control that refuses the other addresses. It runs after names
// were resolved, so a name that changes its address between check and use gains nothing.
func (o Outbound) Control(_, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return fault.New(fault.Denied, "connect to %s: not an address", address)
	}
	ip := target.Addr().Unmap()
	switch {
	case Public(ip), slices.Contains(o.Allowed, ip.String()), ip.IsLoopback() && o.Loopback:
		return nil
	case ip.IsLoopback():
		return fault.New(fault.Denied, "connect to %s: other machines can reach this server, so its clients may not reach this machine through it", ip).
			WithHint("add the server to luanette.toml, or allow this machine: mcp.allowed_hosts = [\"localhost\"]")
	}
	return fault.New(fault.Denied, "connect to %s: the address is in a private network", ip).
		WithHint("add the server to luanette.toml, or allow the address: mcp.allowed_hosts = [%q]", ip)
}

// Transport makes HTTP requests to allowed addresses, through a proxy if there is one.
func (o Outbound) Transport() http.RoundTripper {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil // it would resolve names after the check
	transport.DialContext = (&Dialer{net.Dialer{Timeout: 5 * time.Second, Resolver: o.Resolver, Control: o.Control}, o.Proxy}).DialContext
	return transport
}

// Client is a client of allowed addresses that follows no redirects: what is sent is for
// the configured host only.
func (o Outbound) Client() *http.Client {
	return &http.Client{
		Transport:     o.Transport(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
