package httpserver

import (
	"net"
	"syscall"
	"time"
)

// handshakes is how long the handshakes of connections take that have begun.
const handshakes = 100 * time.Millisecond

// Listener accepts the connections of clients.
type Listener struct {
	net.Listener
	tcp net.Listener
}

// Leave refuses new connections from now on, so that a load balancer tries another server. It
// resets none: when a listener is simply closed, those that are established and not yet
// accepted are, and a load balancer does not repeat what it has sent on one. Where the system
// can, the first packets of new connections are dropped for a moment instead, while the rest
// is accepted; clients send theirs again after a second, and are refused then.
func (l *Listener) Leave() {
	if conn, ok := l.tcp.(syscall.Conn); ok && dropNew(conn) == nil {
		time.Sleep(handshakes)
	}
	_ = l.Close() // nothing is lost with it
}
