package attach

import (
	"net"
	"syscall"
)

// isUser reports whether the process at the other end belongs to a user, or to root.
func isUser(conn net.Conn, uid int) bool {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	var peer *syscall.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		peer, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	return err == nil && failed == nil && (peer.Uid == 0 || int(peer.Uid) == uid)
}
