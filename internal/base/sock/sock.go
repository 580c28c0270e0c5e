// Package sock reads and writes TCP connections without telling the scheduler.
//
// A system call tells it, so that another thread can take over should the call
// block. Where nothing else was going on, that wakes the scheduler's watchdog, a
// thread that then looks around every 20 µs. But a read or write of a socket never
// blocks; it says that there is nothing to be had. For a hub with one client, which
// waits for the client, then for a server, then for the client, the telling and the
// watchdog were a seventh of what a call cost.
//
// The watchdog is needed nevertheless: it interrupts whoever computes for long. It
// wakes by itself when the next timer is due, so whoever serves connections this way
// has one that is due soon while there is work, and calls Alert when work begins.
package sock

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

// Conn is a connection with such reads and writes, where the system and the
// connection have them; all else is the connection's own.
type Conn struct {
	net.Conn
	raw     syscall.RawConn // nil: there is only the connection's own way
	in, out turn
}

// New makes one of another, which is not to be read or written beside it.
func New(conn net.Conn) *Conn {
	c := &Conn{Conn: conn}
	if has, ok := conn.(syscall.Conn); ok && supported {
		c.raw, _ = has.SyscallConn() // what has none now will not be read or written either
	}
	c.in.try, c.in.once, c.out.try = c.in.read, c.in.look, c.out.write
	return c
}

func (c *Conn) Read(p []byte) (int, error) {
	if c.raw == nil || len(p) == 0 {
		return c.Conn.Read(p)
	}
	c.in.begin(p)
	n, err := c.in.end(c.raw.Read(c.in.try))
	if err != nil {
		return 0, c.fault("read", err)
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (c *Conn) Write(p []byte) (int, error) {
	if c.raw == nil || len(p) == 0 {
		return c.Conn.Write(p)
	}
	c.out.begin(p)
	n, err := c.out.end(c.raw.Write(c.out.try))
	if err != nil {
		err = c.fault("write", err)
	}
	return n, err
}

// Silent tells that the connection is open and nothing came that was not read; where
// it cannot be known it is not. What came is lost in part.
func (c *Conn) Silent() bool {
	if c.raw == nil {
		return false
	}
	c.in.begin(c.in.room[:])
	_, err := c.in.end(c.raw.Read(c.in.once))
	return isNothing(err)
}

// fault says what went wrong as the connection itself would have.
func (c *Conn) fault(op string, err error) error {
	var whole *net.OpError
	if errors.As(err, &whole) { // closed, or past its deadline
		err = whole.Err
	} else {
		err = os.NewSyscallError(op, err)
	}
	return &net.OpError{Op: op, Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

// turn is a read or a write; there is one of each at a time. Its functions are made
// once, since making them anew for every turn is memory for each.
type turn struct {
	mu        sync.Mutex
	try, once func(fd uintptr) (done bool)
	room      [1]byte

	p   []byte
	n   int
	err error
}

func (t *turn) begin(p []byte) {
	t.mu.Lock()
	t.p, t.n, t.err = p, 0, nil
}

// end tells what became of it; err is why it could not be tried.
func (t *turn) end(err error) (int, error) {
	defer t.mu.Unlock()
	t.p = nil
	if err == nil {
		err = t.err
	}
	return t.n, err
}

func (t *turn) read(fd uintptr) (done bool) {
	t.n, t.err = read(fd, t.p)
	return !isNothing(t.err)
}

func (t *turn) look(fd uintptr) (done bool) {
	t.n, t.err = read(fd, t.p)
	return true
}

func (t *turn) write(fd uintptr) (done bool) {
	for t.n < len(t.p) && t.err == nil {
		var n int
		n, t.err = write(fd, t.p[t.n:])
		t.n += n
	}
	if isNothing(t.err) { // for now
		t.err = nil
		return false
	}
	return true
}

func isNothing(err error) bool { return errors.Is(err, syscall.EAGAIN) }
