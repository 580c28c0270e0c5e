package zmtp

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// batch is how many bytes of messages are written together before others have
// their turn.
const batch = 256 << 10

// link is one connection with a peer that introduced itself. Two goroutines
// work on it: one reads, one writes.
type link struct {
	conn *timed
	in   *bufio.Reader
	w    *bufio.Writer
	opts *Options
	peer Peer

	out    *queue        // messages to write
	prefix []byte        // put before each message received, at a ROUTER
	wants  *topics       // what the peer subscribed to, at a PUB
	tell   *topics       // what we subscribe to, at a SUB
	wake   chan struct{} // holds a token when the writer shall look at pong and tell

	told  map[string]struct{} // what of tell the peer knows; the writer's alone
	beats atomic.Bool         // the peer knows heartbeats

	mu   sync.Mutex
	pong []byte // the answer owed to the latest PING
}

// newLink introduces us to whoever is at the other end of conn.
func newLink(conn net.Conn, kind Kind, opts *Options) (*link, error) {
	l := &link{
		conn: &timed{Conn: conn},
		opts: opts,
		out:  newQueue(opts.SendQueue, opts.SendBytes),
		wake: make(chan struct{}, 1),
		told: make(map[string]struct{}),
	}
	l.in = bufio.NewReaderSize(l.conn, 32<<10)
	l.w = bufio.NewWriterSize(conn, 32<<10)
	l.conn.until(time.Now().Add(opts.Handshake))
	peer, err := introduce(l.conn, l.in, kind, opts.Identity)
	l.peer = peer
	if err != nil {
		return l, l.explain(err)
	}
	l.conn.until(time.Time{})
	l.beats.Store(peer.Minor >= 1)
	l.listenFor(0)
	return l, nil
}

// run reads and writes until the connection or ctx ends, and says why it did.
func (l *link) run(ctx context.Context, p pattern) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	end := func(err error) {
		cancel(l.explain(err))
		l.conn.Close()
	}
	var writer sync.WaitGroup
	writer.Go(func() { end(l.write(ctx)) })
	end(l.read(ctx, p))
	writer.Wait()
	return context.Cause(ctx)
}

// explain says of a deadline that passed what it means here.
func (l *link) explain(err error) error {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return fault.Wrap(fault.Timeout, err, "the peer was silent for %v", l.conn.patience.Round(time.Millisecond)).
		WithHint("it hangs, or the network between is cut; a connection is tried again by itself")
}

// read hands each message to the pattern, and waits while that has no room. It
// does not read then, so a peer is not found silent for our own slowness.
func (l *link) read(ctx context.Context, p pattern) error {
	for {
		m, err := l.message(p)
		if err != nil {
			return err
		}
		if err := p.receive(ctx, l, m); err != nil {
			return err
		}
	}
}

// message reads the frames of one message, and deals with commands between them.
func (l *link) message(p pattern) (Message, error) {
	m := make(Message, 0, 8)
	if l.prefix != nil {
		m = append(m, l.prefix)
	}
	left := l.opts.MaxMessage
	for frames := 0; ; {
		flags, body, err := readFrame(l.in, left)
		if err != nil {
			if frames > 0 {
				err = cutShort(err)
			}
			return nil, err
		}
		if flags&flagCommand != 0 {
			if err := l.obey(p, body); err != nil {
				return nil, err
			}
			continue
		}
		if frames++; frames > l.opts.MaxFrames {
			return nil, violation("read message: more than %d frames", l.opts.MaxFrames)
		}
		left -= len(body)
		m = append(m, body)
		if flags&flagMore == 0 {
			return m, nil
		}
	}
}

// obey does what a command says.
func (l *link) obey(p pattern, body []byte) error {
	name, data, err := splitCommand(body)
	if err != nil {
		return err
	}
	switch name {
	case cmdPing:
		ttl, context, err := splitPing(data)
		if err != nil {
			return err
		}
		l.beats.Store(true)
		l.listenFor(ttl)
		l.owe(command(cmdPong, context...))
	case cmdError:
		return turnedDown(data)
	case cmdSubscribe:
		return p.subscribe(l, data, true)
	case cmdCancel:
		return p.subscribe(l, data, false)
	}
	return nil
}

// listenFor sets how long the peer may be silent: as long as our heartbeat
// allows, or as it asks itself if that is less. It is called before or by the
// reader.
func (l *link) listenFor(ttl time.Duration) {
	patience := time.Duration(0)
	if l.beats.Load() {
		patience = l.opts.Heartbeat.patience()
	}
	if ttl > 0 && (patience == 0 || ttl < patience) {
		patience = ttl
	}
	l.conn.patience = patience
}

// owe has the writer send a PONG. Of several the latest is enough.
func (l *link) owe(pong []byte) {
	l.mu.Lock()
	l.pong = pong
	l.mu.Unlock()
	signal(l.wake)
}

// timed is a connection whose reads end when the peer is silent for too long.
type timed struct {
	net.Conn
	patience time.Duration // zero is for ever; the reader's alone
	deadline time.Time     // of the handshake as a whole
}

// until bounds reading and writing by one deadline, or by none when t is zero.
func (c *timed) until(t time.Time) {
	c.deadline = t
	c.patience = max(0, time.Until(t))
	_ = c.SetDeadline(t) // a closed connection says so when it is used
}

func (c *timed) Read(p []byte) (int, error) {
	if c.deadline.IsZero() {
		var t time.Time
		if c.patience > 0 {
			t = time.Now().Add(c.patience)
		}
		_ = c.SetReadDeadline(t) // a closed connection says so when it is read
	}
	return c.Conn.Read(p)
}
