// Package launch starts programs inside the limits of their profile.
package launch

import (
	"net"
	"net/netip"
)

// Gateway is the only way out of a program that has no network of its own.
type Gateway interface {
	// Env returns the variables, as NAME=value, by which the program finds the gateway at
	// address, a host:port that it can connect to.
	Env(address string) []string

	// Files are files that the program must be able to read, such as certificates.
	Files() []string

	// Serve accepts the program's connections until the listener is closed. If shared,
	// other programs of this computer reach the listener, too, and the gateway must
	// check that a connection is from the program, by a password in Env.
	Serve(listener net.Listener, shared bool)

	// Ports are the ports of other hosts at which the gateway takes connections of
	// programs that do not know it.
	Ports() []int

	// ServeDirect accepts connections that the program believes to have with another
	// host, until the listener is closed. Their local address is that of the host.
	ServeDirect(listener net.Listener)

	// ServeNames answers questions of DNS until conn is closed, with addresses by which
	// the gateway knows the name again.
	ServeNames(conn net.PacketConn)

	// HostOf is the host that the program means by an address.
	HostOf(address netip.Addr) string

	// Close releases it, also if it was never served.
	Close()
}
