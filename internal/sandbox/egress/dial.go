package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/luanette/luanette/internal/base/netguard"
)

// refusedError says that a destination is not allowed. allow is the entry of network that
// would allow it; empty if none can.
type refusedError struct {
	reason string
	allow  string
}

func (e *refusedError) Error() string { return e.reason }

// dialTimeout bounds one attempt to connect.
const dialTimeout = 15 * time.Second

// dialer connects to destinations within the rules.
type dialer struct {
	rules   Rules
	resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	dial    func(ctx context.Context, address netip.AddrPort) (net.Conn, error)
}

// connect resolves the name once and connects to one of the addresses it found and
// checked. A name that changes its address in between gains nothing.
func (d dialer) connect(ctx context.Context, to destination) (net.Conn, error) {
	addresses, err := d.addresses(ctx, to)
	if err != nil {
		return nil, err
	}
	var failed []error
	for _, address := range addresses {
		conn, err := d.dial(ctx, netip.AddrPortFrom(address, to.port))
		if err != nil {
			failed = append(failed, err)
			continue
		}
		// Public addresses of this machine lead to what listens here, ourselves included.
		if netguard.Public(address) && isOwn(address, conn) && !d.rules.all && !d.rules.lists(address, to.port) {
			_ = conn.Close() // nothing was sent
			return nil, notPublic(to, address)
		}
		return conn, nil
	}
	return nil, errors.Join(failed...)
}

// addresses are those of a destination that the rules permit.
func (d dialer) addresses(ctx context.Context, to destination) ([]netip.Addr, error) {
	found := []netip.Addr{to.address}
	if !to.address.IsValid() {
		var err error
		if found, err = d.lookup(ctx, to.host); err != nil {
			return nil, fmt.Errorf("resolve %s: %w", to.host, err)
		}
	}
	var permitted []netip.Addr
	for i, address := range found {
		found[i] = address.Unmap().WithZone("")
		if d.rules.permits(to, found[i]) {
			permitted = append(permitted, found[i])
		}
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("resolve %s: no address", to.host)
	case len(permitted) == 0:
		return nil, notPublic(to, found[0])
	}
	return permitted, nil
}

// notPublic refuses an address of this machine or of a private network.
func notPublic(to destination, address netip.Addr) error {
	return &refusedError{
		reason: fmt.Sprintf("%s leads to %s, which is not on the public internet", to.host, address),
		allow:  netip.AddrPortFrom(address, to.port).String(),
	}
}

// lookup resolves a name. localhost is this machine, whatever a resolver says.
func (d dialer) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if host == "localhost" {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	return d.resolve(ctx, host)
}

// resolveName asks the system's resolver.
func resolveName(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// dialAddress connects to an address.
func dialAddress(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
	plain := net.Dialer{Timeout: dialTimeout}
	conn, err := plain.DialTCP(ctx, "tcp", netip.AddrPort{}, address)
	if err != nil {
		return nil, err // not conn, which is a nil pointer
	}
	return conn, nil
}

// isOwn reports whether an address is this machine's: then the kernel also chose it for
// our end of the connection.
func isOwn(address netip.Addr, conn net.Conn) bool {
	local, known := conn.LocalAddr().(*net.TCPAddr)
	return known && local.AddrPort().Addr().Unmap() == address
}
