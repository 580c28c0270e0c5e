package zmtp

import (
	"context"
	"net"
	"time"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/fault"
)

// keepDialing keeps one connection up until ctx ends. It waits longer from one
// failure to the next; a connection that lived no longer than the wait before it
// is one as well.
func (s *Socket) keepDialing(ctx context.Context, dial func(context.Context) (net.Conn, error)) {
	var wait time.Duration
	for failures := 1; ; failures++ {
		began := time.Now()
		ended := s.dialOnce(ctx, dial)
		if ctx.Err() != nil {
			s.parted(ctx, ended)
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

// dialOnce connects and talks until that ends.
func (s *Socket) dialOnce(ctx context.Context, dial func(context.Context) (net.Conn, error)) Event {
	within, cancel := context.WithTimeout(ctx, s.opts.Handshake)
	conn, err := dial(within)
	cancel()
	if err != nil {
		return Event{Type: Refused, Peer: Peer{Addr: s.addr}, Err: fault.Wrap(fault.Unavailable, err, "connect to %s", s.addr).
			WithHint("see that the program at the other end runs and listens there")}
	}
	return s.serve(ctx, conn)
}

// keepAccepting talks to everybody who connects, each in a goroutine of its own,
// until ctx ends. It closes l.
func (s *Socket) keepAccepting(ctx context.Context, l net.Listener) {
	hangUp := func() { _ = l.Close() } // an error changes nothing for us
	defer hangUp()
	stop := context.AfterFunc(ctx, hangUp)
	defer stop()
	seats := make(chan struct{}, s.opts.MaxPeers)
	for failures := 1; ; failures++ {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			if err == nil {
				conn.Close()
			}
			return
		}
		if err != nil { // out of file descriptors, most likely: it passes
			pause(ctx, backoff.Policy{}.Delay(failures))
			continue
		}
		failures = 0
		select {
		case seats <- struct{}{}:
			s.work.Go(func() {
				s.parted(ctx, s.serve(ctx, conn))
				<-seats
			})
		default:
			conn.Close()
			s.opts.OnEvent(Event{Type: Refused, Peer: Peer{Addr: conn.RemoteAddr().String()}, Err: fault.New(fault.Limit, "accept: %d peers are connected already", s.opts.MaxPeers).
				WithHint("let fewer programs connect, or raise the limit")})
		}
	}
}

// parted tells how a connection ended, unless it never began because we closed.
func (s *Socket) parted(ctx context.Context, ended Event) {
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
