package hootserver

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// NextEndpoint is the default endpoint for broadcasts beside a listening endpoint: the
// next TCP port, or the path with an ending.
func NextEndpoint(endpoint string) string {
	scheme, rest, _ := strings.Cut(endpoint, "://")
	host, port, err := net.SplitHostPort(rest)
	if scheme != "tcp" || err != nil {
		return endpoint + ".events"
	}
	if n, err := strconv.Atoi(port); err == nil && n > 0 {
		port = strconv.Itoa(n + 1)
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// IsLocal tells whether only this machine can reach an endpoint.
func IsLocal(endpoint string) bool {
	scheme, rest, _ := strings.Cut(endpoint, "://")
	host, _, err := net.SplitHostPort(rest)
	if scheme != "tcp" || err != nil {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
