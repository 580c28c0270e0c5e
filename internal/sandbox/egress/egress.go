// Package egress is the proxy through which a sandboxed program reaches the network. It
// takes HTTP CONNECT, plain HTTP and SOCKS5 on one listener, connects to allowed
// destinations only, and records every connection.
package egress
