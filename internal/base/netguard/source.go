package netguard

import "net/netip"

// Source is what failures and attempts of an address are counted for: the address, or its
// network of 64 bits, since one IPv6 client has all addresses of it.
func Source(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil || !ip.Is6() || ip.Is4In6() {
		return address
	}
	network, _ := ip.WithZone("").Prefix(64) // 64 bits fit
	return network.String()
}
