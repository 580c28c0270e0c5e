package zmtp

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
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

// dialLoop keeps one connection up until ctx ends. The delay grows with each
// failure; a connection that lasted no longer than the delay before it counts as
// a failure.
func (s *Socket) dialLoop(ctx context.Context, dial func(context.Context) (net.Conn, error)) {
	var wait time.Duration
	for failures := 1; ; failures++ {
		began := time.Now()
		ended := s.dialOnce(ctx, dial)
		if ctx.Err() != nil {
			s.reportEnd(ctx, ended)
			return
		}
		if ended.Type == Disconnected && time.Since(began) > wait {
			failures = 1
		}
		wait = s.opts.Reconnect.Delay(failures)
		ended.Retry = wait
		s.opts.OnEvent(ended)
		pause(ctx, wait)
	}
}

// dialOnce connects and serves the connection until it ends.
func (s *Socket) dialOnce(ctx context.Context, dial func(context.Context) (net.Conn, error)) Event {
	limited, cancel := context.WithTimeout(ctx, s.opts.limits.handshake)
	conn, err := dial(limited)
	cancel()
	if err != nil {
		return Event{Type: Refused, Peer: Peer{Addr: s.addr}, Err: fault.Wrap(fault.Unavailable, err, "connect to %s", s.addr).
			WithHint("check that the program at the other end is running and listening there")}
	}
	return s.serve(ctx, conn)
}

// acceptLoop serves every connection in a goroutine of its own until ctx ends. It
// closes l.
func (s *Socket) acceptLoop(ctx context.Context, l net.Listener) {
	closeListener := func() { _ = l.Close() } // an error changes nothing
	defer closeListener()
	stop := context.AfterFunc(ctx, closeListener)
	defer stop()
	slots := make(chan struct{}, s.opts.limits.peers)
	for failures := 1; ; failures++ {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			if err == nil {
				conn.Close()
			}
			return
		}
		if err != nil { // most likely out of file descriptors, which is temporary
			pause(ctx, backoff.Policy{}.Delay(failures))
			continue
		}
		failures = 0
		select {
		case slots <- struct{}{}:
			s.work.Go(func() {
				s.reportEnd(ctx, s.serve(ctx, conn))
				<-slots
			})
		default:
			conn.Close()
			s.opts.OnEvent(Event{Type: Refused, Peer: Peer{Addr: conn.RemoteAddr().String()}, Err: fault.New(fault.Limit, "accept: %d peers are connected already", s.opts.limits.peers).
				WithHint("connect fewer programs, or raise the limit")})
		}
	}
}

// reportEnd reports how a connection ended, unless it never began because the
// socket was closed.
func (s *Socket) reportEnd(ctx context.Context, ended Event) {
	if ended.Type == Disconnected || ctx.Err() == nil {
		s.opts.OnEvent(ended)
	}
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
