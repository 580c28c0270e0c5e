package zmtp

import (
	"context"
	"net"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/fault"
)

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
	limited, cancel := context.WithTimeout(ctx, s.opts.Handshake)
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
	slots := make(chan struct{}, s.opts.MaxPeers)
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
			s.opts.OnEvent(Event{Type: Refused, Peer: Peer{Addr: conn.RemoteAddr().String()}, Err: fault.New(fault.Limit, "accept: %d peers are connected already", s.opts.MaxPeers).
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
