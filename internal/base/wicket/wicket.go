// Package wicket is the small door in the big gate: it answers small, whole
// HTTP/1.1 requests on a loop of its own and hands every other connection, with all
// that was read of it, to net/http.
//
// The server of net/http starts a goroutine for each request that waits for its
// client to leave, sets deadlines for each and wakes the one to end the other. For
// a call that is passed on within a few hundred microseconds that is a good part of
// all it costs. Here a request has the goroutine of its connection and nothing else;
// one guard walks past all connections now and then, ends those that are too slow and
// listens whether the client is still there only where an answer takes longer.
//
// Only what is plain goes through: POST, a head that comes in one piece, one Host,
// one Content-Length, nothing about framing or upgrades. Whatever is odd is left to
// net/http, which knows how to refuse it.
package wicket

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Server serves Main's Handler through the small door where it can.
type Server struct {
	main  *http.Server
	limit Limits

	handed *handed
	base   context.Context
	clock  atomic.Int64 // nanoseconds, as of the guard's last walk
	dozing atomic.Bool  // the guard walks slowly, for nothing happens
	rouse  chan struct{}
	conns  sync.Map // of *conn
	date   date
	inside sync.WaitGroup

	closing  atomic.Bool
	closed   chan struct{} // nobody is let in any more
	once     sync.Once
	mu       sync.Mutex
	listener net.Listener
	accepted chan struct{} // closed when Serve takes no more; nil before Serve
}

// Limits are how long clients may take. What is not set is taken from the Server.
type Limits struct {
	Fresh time.Duration // until the first request's first byte
	Idle  time.Duration // until the next request's
	Body  time.Duration // until a request is whole whose head has come
	Write time.Duration // until an answer is taken
}

// New makes a server beside main, which serves those that do not fit through.
func New(main *http.Server, limit Limits) *Server {
	if limit.Fresh == 0 {
		limit.Fresh = main.ReadHeaderTimeout
	}
	if limit.Idle == 0 {
		limit.Idle = main.IdleTimeout
	}
	return &Server{main: main, limit: limit, rouse: make(chan struct{}, 1), closed: make(chan struct{})}
}

// Serve answers those who come until Shutdown or Close; then it returns
// http.ErrServerClosed, as http.Server does.
func (s *Server) Serve(listener net.Listener) error {
	if !s.open(listener) {
		return http.ErrServerClosed
	}
	s.handed = &handed{Listener: listener, conns: make(chan net.Conn), closed: s.closed}
	s.base = context.Background()
	if s.main.BaseContext != nil {
		s.base = s.main.BaseContext(listener)
	}
	s.clock.Store(time.Now().UnixNano())
	var beside sync.WaitGroup
	beside.Go(func() { _ = s.main.Serve(s.handed) }) // ends when handed does, and that is when we do
	beside.Go(s.guard)
	err := s.accept(listener)
	close(s.accepted)
	s.once.Do(func() { close(s.closed) })
	beside.Wait()
	return err
}

func (s *Server) open(listener net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() {
		return false
	}
	s.listener, s.accepted = listener, make(chan struct{})
	return true
}

func (s *Server) accept(listener net.Listener) error {
	for pause := time.Duration(0); ; {
		peer, err := listener.Accept()
		switch {
		case s.closing.Load():
			if err == nil {
				_ = peer.Close() // it came too late
			}
			return http.ErrServerClosed
		case err != nil && isPassing(err): // too many open files, or a client that left at once
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			select {
			case <-time.After(pause):
			case <-s.closed:
			}
			continue
		case err != nil:
			return err
		}
		pause = 0
		c := newConn(s, peer)
		s.conns.Store(c, nil)
		s.inside.Go(c.converse)
	}
}

func isPassing(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Temporary() //nolint:staticcheck // net/http asks the same, there is no other way to know
}

// Shutdown lets nobody in any more and waits for those inside, as long as ctx
// allows. Who says nothing is sent away at once.
func (s *Server) Shutdown(ctx context.Context) error {
	s.refuse()
	s.conns.Range(func(c, _ any) bool { c.(*conn).dismiss(); return true })
	left := make(chan struct{})
	go func() { s.inside.Wait(); close(left) }()
	err := s.main.Shutdown(ctx)
	select {
	case <-left:
		return err
	case <-ctx.Done():
		return errors.Join(err, ctx.Err())
	}
}

// Close ends all connections at once.
func (s *Server) Close() error {
	s.refuse()
	s.conns.Range(func(c, _ any) bool { c.(*conn).hangUp(errClosed); return true })
	return s.main.Close()
}

// refuse ends accepting.
func (s *Server) refuse() {
	s.mu.Lock()
	s.closing.Store(true)
	listener, accepted := s.listener, s.accepted
	s.mu.Unlock()
	s.once.Do(func() { close(s.closed) })
	if listener != nil {
		_ = listener.Close() // whoever had closed it already has done it for us
		<-accepted
	}
}

// handed is a listener for connections that others have accepted.
type handed struct {
	net.Listener // for its address
	conns        chan net.Conn
	closed       chan struct{}
}

func (h *handed) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close does nothing: the real listener is the Server's.
func (h *handed) Close() error { return nil }

// begun is a connection of which something was read already.
type begun struct {
	net.Conn
	read []byte
}

func (b *begun) Read(p []byte) (int, error) {
	if len(b.read) == 0 {
		return b.Conn.Read(p)
	}
	n := copy(p, b.read)
	if b.read = b.read[n:]; len(b.read) == 0 {
		b.read = nil
	}
	return n, nil
}
