package httpserver

import (
	"context"
	"net"
	"syscall"
	"time"
)

type connectionKey struct{}

func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// ReceivedAt returns when the operating system received the last data of a request's
// connection. Under load goroutines run in another order than their data arrived, often
// the reverse, and this is the order of arrival. Where the system cannot tell, it is now.
func ReceivedAt(ctx context.Context) time.Time {
	now := time.Now()
	c, _ := ctx.Value(connectionKey{}).(net.Conn)
	for {
		wrapped, ok := c.(interface{ NetConn() net.Conn }) // TLS, or limited
		if !ok {
			break
		}
		c = wrapped.NetConn()
	}
	socket, ok := c.(syscall.Conn)
	if !ok {
		return now
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return now
	}
	_ = raw.Control(func(fd uintptr) { // if the connection is closed, nobody waits for the answer
		if at, ok := receivedAt(fd); ok {
			now = at
		}
	})
	return now
}
