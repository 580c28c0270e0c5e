package wicket

import (
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/sock"
)

// How often the guard walks: while requests are served, and while nothing happens.
const (
	stride = 10 * time.Millisecond
	stroll = time.Second
)

var (
	errSlow   = fault.New(fault.Timeout, "the client took too long")
	errClosed = fault.New(fault.Unavailable, "server is shutting down")
	errLeft   = fault.New(fault.Cancelled, "the client closed the connection")
)

// guard walks past all connections until the server is closed. Its clock is all the
// time that connections know, so that they need not look at one of their own.
func (s *Server) guard() {
	timer := time.NewTimer(stride)
	defer timer.Stop()
	quiet := time.Now()
	for {
		select {
		case <-timer.C:
		case <-s.rouse:
		case <-s.closed:
			return
		}
		now := time.Now()
		s.clock.Store(now.UnixNano())
		if s.look(now.UnixNano()) {
			quiet = now
		}
		doze := now.Sub(quiet) > stroll
		s.dozing.Store(doze)
		if doze {
			timer.Reset(stroll)
		} else {
			timer.Reset(stride)
		}
	}
}

// look ends what takes too long, and tells whether anything happened of late.
func (s *Server) look(now int64) (busy bool) {
	s.conns.Range(func(key, _ any) bool {
		c := key.(*conn)
		doing := phase(c.phase.Load()) // before since: what began just now is not old
		age := time.Duration(now - c.since.Load())
		if age < stroll {
			busy = true
		}
		switch doing {
		case fresh:
			c.hurry(s.limit.Fresh, age)
		case idle:
			c.hurry(s.limit.Idle, age)
		case gathering:
			c.hurry(s.limit.Body, age)
		case writing:
			if over(s.limit.Write, age) {
				c.hangUp(errSlow)
			}
		case serving:
			if age >= stride {
				c.watch()
			}
		}
		return true
	})
	return busy
}

// wake makes the guard walk quickly again, and the scheduler's watchdog look after
// what is done from now on: as long as the guard does, it cannot sleep for long.
func (s *Server) wake() {
	if s.dozing.Load() && s.dozing.CompareAndSwap(true, false) {
		sock.Alert()
		select {
		case s.rouse <- struct{}{}:
		default:
		}
	}
}

// hurry ends the reading of a client that takes longer than it may.
func (c *conn) hurry(limit, age time.Duration) {
	if over(limit, age) {
		c.interrupt()
	}
}

// over tells whether something has taken too long; no limit is none.
func over(limit, age time.Duration) bool { return limit > 0 && age > limit }
