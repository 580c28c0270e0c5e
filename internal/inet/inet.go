// Package inet keeps others from reaching inside: it knows which addresses are of
// the public internet, and which requests of browsers to let in.
package inet

import (
	"net/netip"
	"slices"
)

// Public tells whether an address is one of the public internet: not this
// machine, not a private network, not IPv4 in disguise.
func Public(address netip.Addr) bool {
	address = address.Unmap()
	return address.IsGlobalUnicast() && !address.IsPrivate() &&
		!slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(address) })
}

// reserved are global unicast by their bits, but nobody's public server.
var reserved = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),     // this network
	netip.MustParsePrefix("100.64.0.0/10"), // carriers' own networks
	netip.MustParsePrefix("192.0.0.0/24"),  // protocol assignments
	netip.MustParsePrefix("198.18.0.0/15"), // benchmarks
	netip.MustParsePrefix("240.0.0.0/4"),   // future use
	netip.MustParsePrefix("64:ff9b::/96"),  // IPv4 behind a translator
	netip.MustParsePrefix("2002::/16"),     // IPv4 in a tunnel
}
