//go:build !linux

package attach

import "net"

// isUser is true: the mode of the socket and of its folder decide who can connect.
func isUser(net.Conn, int) bool { return true }
