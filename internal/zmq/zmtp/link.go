package zmtp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// batch is how many bytes of messages are written before a PONG or subscription
// can be.
const batch = 256 << 10

// link is one connection after the handshake. One goroutine reads from it and one
// writes to it.
type link struct {
	conn *timedConn
	in   *bufio.Reader
	w    *bufio.Writer
	opts *Options
	peer Peer
	// cipher encrypts frames; nil without security.
	cipher *cipher

	out    *queue  // messages to write
	prefix []byte  // of a ROUTER: put before each received message
	topics *topics // of a PUB: what the peer subscribed to
	// subscriptions are those of a SUB.
	subscriptions *topics
	wake          chan struct{} // holds a token when pong or subscriptions changed

	sent       map[string]bool // subscriptions the peer has received; only the writer uses it
	heartbeats atomic.Bool     // the peer supports heartbeats

	mu   sync.Mutex
	pong []byte // the reply to the latest PING, until it is written
}

// newLink does the handshake on conn.
func newLink(conn net.Conn, h *handshake, opts *Options) (*link, error) {
	l := &link{
		conn: &timedConn{Conn: conn},
		opts: opts,
		out:  newQueue(opts.limits.sendQueue, opts.limits.sendBytes),
		wake: make(chan struct{}, 1),
		sent: map[string]bool{},
	}
	l.in = bufio.NewReaderSize(l.conn, 32<<10)
	l.w = bufio.NewWriterSize(conn, 32<<10)
	l.conn.bound(time.Now().Add(opts.limits.handshake))
	peer, sealed, err := h.do(l.conn, l.in)
	l.peer, l.cipher = peer, sealed
	if err != nil {
		return l, l.explain(err)
	}
	l.conn.bound(time.Time{})
	l.heartbeats.Store(peer.Minor >= 1)
	l.setSilenceLimit(0)
	return l, nil
}

// run reads and writes until the connection or ctx ends, and returns the reason.
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

// explain turns an exceeded deadline into an error that says the peer was silent.
func (l *link) explain(err error) error {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return fault.Wrap(fault.Timeout, err, "the peer was silent for %v", l.conn.silence.Round(time.Millisecond)).
		WithHint("the peer hangs or the network is interrupted; the connection is retried automatically")
}

// read hands each message to the pattern and waits while its queue is full.
// Meanwhile nothing is read, so a peer does not count as silent because this end
// is slow.
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

// message reads the frames of one message, and handles commands between them.
func (l *link) message(p pattern) (Message, error) {
	m := make(Message, 0, 8)
	if l.prefix != nil {
		m = append(m, l.prefix)
	}
	left := l.opts.MaxMessage
	for frames := 0; ; {
		flags, body, err := l.readFrame(left)
		if err != nil {
			if frames > 0 {
				err = midFrame(err)
			}
			return nil, err
		}
		if flags&flagCommand != 0 {
			if err := l.handleCommand(p, body); err != nil {
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

// readFrame reads one frame and decrypts it.
func (l *link) readFrame(limit int) (flags byte, body []byte, err error) {
	if l.cipher == nil {
		return readFrame(l.in, limit)
	}
	_, body, err = readFrame(l.in, limit+sealOverhead)
	if err != nil {
		return 0, nil, err
	}
	return l.cipher.open(body)
}

// writeFrame encrypts one frame and writes it.
func (l *link) writeFrame(flags byte, body []byte) {
	if l.cipher != nil {
		flags, body = 0, l.cipher.seal(flags, body)
	}
	writeFrame(l.w, flags, body)
}

// writeMessage writes the frames of a message.
func (l *link) writeMessage(m Message) {
	last := len(m) - 1
	for _, body := range m[:last] {
		l.writeFrame(flagMore, body)
	}
	l.writeFrame(0, m[last])
}

// handleCommand handles a command.
func (l *link) handleCommand(p pattern, body []byte) error {
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
		l.heartbeats.Store(true)
		l.setSilenceLimit(ttl)
		l.queuePong(command(cmdPong, context...))
	case cmdError:
		return refusedByPeer(data)
	case cmdSubscribe:
		return p.subscribe(l, data, true)
	case cmdCancel:
		return p.subscribe(l, data, false)
	}
	return nil
}

// setSilenceLimit sets how long the peer may be silent: as long as our heartbeat
// allows, or the peer's own ttl if that is less. Only the reader calls it, or
// newLink before there is a reader.
func (l *link) setSilenceLimit(ttl time.Duration) {
	limit := time.Duration(0)
	if l.heartbeats.Load() {
		limit = l.opts.limits.silence()
	}
	if ttl > 0 && (limit == 0 || ttl < limit) {
		limit = ttl
	}
	l.conn.silence = limit
}

// queuePong has the writer send a PONG. Only the latest one is sent.
func (l *link) queuePong(pong []byte) {
	l.mu.Lock()
	l.pong = pong
	l.mu.Unlock()
	signal(l.wake)
}

// timedConn is a connection whose reads fail when the peer is silent for too long.
type timedConn struct {
	net.Conn
	silence  time.Duration // longest silence; zero: no limit; only the reader uses it
	deadline time.Time     // of the whole handshake
}

// bound sets one deadline for reading and writing; a zero t removes it.
func (c *timedConn) bound(t time.Time) {
	c.deadline = t
	c.silence = max(0, time.Until(t))
	_ = c.SetDeadline(t) // a closed connection fails when it is used
}

func (c *timedConn) Read(p []byte) (int, error) {
	if c.deadline.IsZero() {
		var t time.Time
		if c.silence > 0 {
			t = time.Now().Add(c.silence)
		}
		_ = c.SetReadDeadline(t) // a closed connection fails when it is read
	}
	return c.Conn.Read(p)
}

// write writes messages, heartbeats, PONGs and subscriptions until ctx ends. A
// batch being written when the connection fails counts as sent.
func (l *link) write(ctx context.Context) error {
	var beat <-chan time.Time
	if every := l.opts.limits.interval; every > 0 {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		beat = ticker.C
	}
	for {
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.wake:
			err = l.writePending()
		case <-beat:
			err = l.writePing()
		case m := <-l.out.items:
			err = l.writeBatch(m)
		}
		if err != nil {
			return err
		}
	}
}

// writeBatch writes m and further queued messages, up to a limit, with one flush.
func (l *link) writeBatch(m Message) error {
	written := 0
	for more := true; more; {
		l.writeMessage(m)
		written += m.size()
		more = false
		if written < batch {
			select {
			case m = <-l.out.items:
				more = true
			default:
			}
		}
	}
	err := l.w.Flush()
	l.out.release(written)
	return err
}

// writePing sends a PING to a peer that supports it.
func (l *link) writePing() error {
	if !l.heartbeats.Load() {
		return nil
	}
	l.writeFrame(flagCommand, ping(l.opts.limits.silence()))
	return l.w.Flush()
}

// writePending writes the pending PONG and changes of our subscriptions.
func (l *link) writePending() error {
	l.mu.Lock()
	pong := l.pong
	l.pong = nil
	l.mu.Unlock()
	if pong != nil {
		l.writeFrame(flagCommand, pong)
	}
	if l.subscriptions != nil {
		l.writeTopics(l.subscriptions.list())
	}
	return l.w.Flush()
}

// writeTopics writes the subscriptions that the peer has not received: with a command
// or, for a peer that uses ZMTP 3.0, with a message that begins with a one.
func (l *link) writeTopics(wanted []string) {
	for _, topic := range wanted {
		if l.sent[topic] {
			continue
		}
		l.sent[topic] = true
		if l.peer.Minor >= 1 {
			l.writeFrame(flagCommand, command(cmdSubscribe, []byte(topic)...))
		} else {
			l.writeFrame(0, append([]byte{1}, topic...))
		}
	}
}

// The two parts of a greeting: a signature that older versions understand as
// well, then version, mechanism and filler.
const (
	signatureSize = 10
	greetingSize  = 64
)

// The security mechanisms.
const (
	mechanismNull  = "NULL"
	mechanismCurve = "CURVE"
)

// asServer is the position of the byte in a greeting that says which end is the server
// of the mechanism.
const asServer = 32

// greeting is our greeting: ZMTP 3.1.
func (h *handshake) greeting() []byte {
	g := make([]byte, greetingSize)
	g[0], g[8], g[9] = 0xff, 1, 0x7f
	g[10], g[11] = 3, 1
	copy(g[12:], h.mechanism())
	if h.curve != nil && h.listens {
		g[asServer] = 1
	}
	return g
}

func (h *handshake) mechanism() string {
	if h.curve != nil {
		return mechanismCurve
	}
	return mechanismNull
}

// readGreeting reads the peer's greeting and returns its minor version. It fails
// on the first bytes of another protocol, without waiting for more.
func (h *handshake) readGreeting(in io.Reader) (minor int, err error) {
	g := make([]byte, greetingSize)
	if _, err := io.ReadFull(in, g[:signatureSize]); err != nil {
		return 0, err
	}
	if g[0] != 0xff || g[9]&1 == 0 {
		return 0, violation("read greeting: %q is not ZMTP", g[:signatureSize])
	}
	if _, err := io.ReadFull(in, g[signatureSize:signatureSize+1]); err != nil {
		return 0, midFrame(err)
	}
	if g[10] < 3 {
		return 0, violation("read greeting: the peer uses a version of ZMTP before 3.0")
	}
	if _, err := io.ReadFull(in, g[signatureSize+1:]); err != nil {
		return 0, midFrame(err)
	}
	if err := h.checkMechanism(string(bytes.TrimRight(g[12:asServer], "\x00"))); err != nil {
		return 0, err
	}
	if g[10] > 3 {
		return 1, nil // later versions fall back to ours
	}
	return int(g[11]), nil
}

// checkMechanism checks that both ends use the same mechanism. Which end is its server is
// not checked: libzmq does not say so in its greeting.
func (h *handshake) checkMechanism(theirs string) error {
	if ours := h.mechanism(); theirs != ours {
		return fault.New(fault.Upstream, "read greeting: the peer uses the security mechanism %.20q, this end %s", theirs, ours).
			WithHint("set the CURVE keys at both ends or at none")
	}
	return nil
}

// handshake is how one end introduces itself.
type handshake struct {
	kind    Kind
	curve   *Curve // nil: no security
	listens bool   // this end listens, and is the server of the mechanism
}

// do exchanges greetings, keys and READY with the peer. The caller limits its time
// with the connection's deadline. The cipher is nil without security.
func (h *handshake) do(conn net.Conn, in *bufio.Reader) (Peer, *cipher, error) {
	peer := Peer{Addr: conn.RemoteAddr().String()}
	if _, err := conn.Write(h.greeting()); err != nil {
		return peer, nil, err
	}
	minor, err := h.readGreeting(in)
	if err != nil {
		return peer, nil, err
	}
	peer.Minor = minor
	x := exchange{in, bufio.NewWriter(conn)}
	sealed, theirs, err := h.introduce(x)
	if err != nil {
		return peer, nil, err
	}
	if err := peer.read(theirs); err != nil {
		return peer, nil, err
	}
	if !h.kind.accepts(peer.Kind) {
		if sealed == nil {
			writeFrame(x.out, flagCommand, refusal("a "+h.kind.String()+" does not connect to this kind of socket"))
			_ = x.out.Flush() // the connection ends either way
		}
		return peer, nil, violation("read READY: a %s cannot connect to a %.20q", h.kind, peer.Kind)
	}
	return peer, sealed, nil
}

// introduce exchanges the metadata of both ends with the mechanism.
func (h *handshake) introduce(x exchange) (*cipher, []byte, error) {
	ours := metadata(h.kind)
	switch {
	case h.curve != nil && h.listens:
		return curveServer(x, h.curve, ours)
	case h.curve != nil:
		return curveClient(x, h.curve, ours)
	}
	if err := x.send(cmdReady, ours); err != nil {
		return nil, nil, err
	}
	theirs, err := x.receive(cmdReady, 0)
	return nil, theirs, err
}

// read reads the peer's metadata.
func (p *Peer) read(metadata []byte) error {
	found, err := properties(metadata)
	if err != nil {
		return err
	}
	p.Kind, p.Identity = found["socket-type"], found["identity"]
	if len(p.Identity) > 255 {
		return violation("read READY: an identity of %d bytes", len(p.Identity))
	}
	return nil
}

// refusedByPeer is the error for a peer that sent ERROR.
func refusedByPeer(data []byte) error {
	return fault.New(fault.Upstream, "the peer refused the connection: %q", reason(data)).
		WithHint("check that both ends are ZeroMQ sockets of compatible kinds and, with CURVE, that the peer allows this end's public key")
}
