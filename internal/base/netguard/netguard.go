// Package netguard decides which addresses are on the public internet, and which
// requests of browsers are allowed.
package netguard

import (
	"net/netip"
	"slices"
)

// Public reports whether an address is on the public internet: not this machine, not a
// private network, not an embedded IPv4 address.
func Public(address netip.Addr) bool {
	address = address.Unmap()
	return address.IsGlobalUnicast() && !address.IsPrivate() && (address.Is4() || assigned.Contains(address)) &&
		!slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(address) })
}

// assigned is the IPv6 range from which public servers have addresses.
var assigned = netip.MustParsePrefix("2000::/3")

// reserved are global unicast addresses that no public server has.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),       // this network
	netip.MustParsePrefix("100.64.0.0/10"),   // shared by carriers (carrier-grade NAT)
	netip.MustParsePrefix("192.0.0.0/24"),    // protocol assignments
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("192.88.99.0/24"),  // tunnel relays
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
	netip.MustParsePrefix("240.0.0.0/4"),     // future use
	netip.MustParsePrefix("2001::/23"),       // protocol assignments, IPv4 tunnels among them
	netip.MustParsePrefix("2001:db8::/32"),   // documentation
	netip.MustParsePrefix("2002::/16"),       // IPv4 tunnels
	netip.MustParsePrefix("3fff::/20"),       // documentation
}
