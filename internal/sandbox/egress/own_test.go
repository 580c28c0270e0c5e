package egress

import (
	"context"
	"net"
	"net/netip"
	"testing"
)

// ownEnd is a connection whose own end has an address.
type ownEnd struct {
	net.Conn
	local net.TCPAddr
}

func (c ownEnd) LocalAddr() net.Addr { return &c.local }
func (c ownEnd) Close() error        { return nil }

// A name that leads to a public address of this machine is refused, unless the address is
// listed.
func TestOwnPublicAddress(t *testing.T) {
	t.Parallel()
	own := netip.MustParseAddr("93.184.216.34")
	for entry, allowed := range map[string]bool{"93.184.216.34:80": true, "93.184.216.35:80": false} {
		rules, err := ParseRules([]string{"me.example:80", entry})
		if err != nil {
			t.Fatal(err)
		}
		d := dialer{
			rules:   rules,
			resolve: func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{own}, nil },
			dial: func(_ context.Context, to netip.AddrPort) (net.Conn, error) {
				return ownEnd{local: *net.TCPAddrFromAddrPort(to)}, nil
			},
		}
		_, err = d.connect(t.Context(), destination{host: "me.example", port: 80})
		if allowed != (err == nil) || !allowed && asRefused(err) == nil {
			t.Errorf("with %s: %v", entry, err)
		}
	}
}
