// Package netguard keeps others from reaching inside: it knows which addresses are of
// the public internet, and which requests of browsers to let in.
package netguard

import (
	"net/netip"
	"slices"
)

// Public tells whether an address is one of the public internet: not this
// machine, not a private network, not IPv4 in disguise.
func Public(address netip.Addr) bool {
	address = address.Unmap()
	return address.IsGlobalUnicast() && !address.IsPrivate() && (address.Is4() || assigned.Contains(address)) &&
		!slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(address) })
}

// assigned is all of IPv6 that servers of the public internet have addresses of.
var assigned = netip.MustParsePrefix("2000::/3")

// reserved are global unicast by their bits, but nobody's public server.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),       // this network
	netip.MustParsePrefix("100.64.0.0/10"),   // carriers' own networks
	netip.MustParsePrefix("192.0.0.0/24"),    // protocol assignments
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("192.88.99.0/24"),  // relays of tunnels
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("240.0.0.0/4"),     // future use
	netip.MustParsePrefix("2001::/23"),       // protocol assignments, IPv4 in a tunnel among them
	netip.MustParsePrefix("2001:db8::/32"),   // documentation
	netip.MustParsePrefix("2002::/16"),       // IPv4 in a tunnel
	netip.MustParsePrefix("3fff::/20"),       // documentation
}
