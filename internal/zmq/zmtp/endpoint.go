package zmtp

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/luanette/luanette/internal/base/fault"
)

// endpoint is where a socket connects to or listens.
type endpoint struct {
	scheme  string // tcp or ipc
	network string // what package net calls it
	address string
}

// parseEndpoint reads tcp://HOST:PORT, where * stands for every address or any
// free port, and ipc://PATH, where @ begins a name without a file (Linux).
func parseEndpoint(addr string) (endpoint, error) {
	scheme, rest, _ := strings.Cut(addr, "://")
	switch {
	case scheme == "ipc" && rest != "":
		return endpoint{scheme, "unix", rest}, nil
	case scheme == "tcp":
		host, port, err := net.SplitHostPort(rest)
		if err != nil || port == "" {
			break
		}
		if host == "*" {
			host = ""
		}
		if port == "*" {
			port = "0"
		}
		return endpoint{scheme, "tcp", net.JoinHostPort(host, port)}, nil
	}
	return endpoint{}, fault.New(fault.InvalidParams, "read endpoint %q", addr).
		WithHint("write tcp://HOST:PORT or ipc://PATH, for example tcp://127.0.0.1:5580")
}

func (e endpoint) dial(ctx context.Context, control func(string, string, syscall.RawConn) error) (net.Conn, error) {
	d := net.Dialer{Control: control}
	return d.DialContext(ctx, e.network, e.address)
}

// listen opens the endpoint. It replaces a Unix socket on which no process
// listens any more.
func (e endpoint) listen(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, e.network, e.address)
	if e.network == "unix" && errors.Is(err, syscall.EADDRINUSE) && e.isStale(ctx) && os.Remove(e.address) == nil {
		l, err = lc.Listen(ctx, e.network, e.address)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "listen on %s", e).
			WithHint("another program may be using it; choose another port or path")
	}
	return l, nil
}

// isStale reports whether no process listens on an existing Unix socket.
func (e endpoint) isStale(ctx context.Context) bool {
	conn, err := e.dial(ctx, nil)
	if err == nil {
		conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

func (e endpoint) String() string { return e.scheme + "://" + e.address }
