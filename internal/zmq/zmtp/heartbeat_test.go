package zmtp

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// scripted is the other end of a connection, controlled by a test in a synctest
// bubble.
type scripted struct {
	net.Conn
	in     *bufio.Reader
	out    *bufio.Writer
	events chan Event
	socket *Socket
}

func greeting() []byte { return (&handshake{}).greeting() }

func ready(kind Kind, identity string) []byte {
	return command(cmdReady, appendProperty(appendProperty(nil, "Socket-Type", kind.String()), "Identity", identity)...)
}

// beating are the default limits but for the heartbeat; without an interval there is none.
func beating(interval, timeout time.Duration) limits {
	l := defaultLimits()
	l.interval, l.timeout = interval, timeout
	return l
}

// connect connects a socket to a scripted peer that uses ZMTP 3.minor and does the
// handshake. Nothing is buffered between the two.
func connect(t *testing.T, kind Kind, opts Options, minor byte, peerKind Kind) *scripted {
	t.Helper()
	near, far := net.Pipe()
	conns := make(chan net.Conn, 1)
	conns <- near
	p := &scripted{Conn: far, in: bufio.NewReader(far), out: bufio.NewWriter(far), events: make(chan Event, 100)}
	opts.OnEvent = func(e Event) { p.events <- e }
	s, err := newSocket(t.Context(), handshake{kind: kind}, "pipe", opts, func(ctx context.Context, s *Socket) {
		s.dialLoop(ctx, func(ctx context.Context) (net.Conn, error) {
			select {
			case c := <-conns:
				return c, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	p.socket = s
	t.Cleanup(func() { far.Close(); s.Close() })
	hello := greeting()
	if _, err := io.ReadFull(p.in, make([]byte, greetingSize)); err != nil {
		t.Fatal(err)
	}
	hello[11] = minor
	if _, err := far.Write(hello); err != nil {
		t.Fatal(err)
	}
	p.read(t)
	p.write(t, flagCommand, ready(peerKind, "far"))
	if e := <-p.events; e.Type != Connected {
		t.Fatalf("%v: %v", e.Type, e.Err)
	}
	return p
}

// read is the next frame from the socket.
func (p *scripted) read(t *testing.T) (flags byte, body []byte) {
	t.Helper()
	flags, body, err := readFrame(p.in, 1<<20)
	if err != nil {
		t.Fatalf("the peer reads: %v", err)
	}
	return flags, body
}

func (p *scripted) write(t *testing.T, flags byte, body []byte) {
	t.Helper()
	writeFrame(p.out, flags, body)
	if err := p.out.Flush(); err != nil {
		t.Fatalf("the peer writes: %v", err)
	}
}

func TestPingIsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, Dealer, Options{limits: beating(0, 0)}, 1, Router)
		began := time.Now()
		p.write(t, flagCommand, command(cmdPing, 0, 0, 'c', 't', 'x'))
		if flags, body := p.read(t); flags != flagCommand || !bytes.Equal(body, command(cmdPong, 'c', 't', 'x')) {
			t.Errorf("answered %#x %q", flags, body)
		}
		if !time.Now().Equal(began) {
			t.Errorf("answered after %v", time.Since(began))
		}
	})
}

// TestPingInsideAMessage checks that a PING may come between the frames of a message.
func TestPingInsideAMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, Dealer, Options{}, 1, Router)
		p.write(t, flagMore, []byte("one"))
		p.write(t, flagCommand, command(cmdPing, 0, 0))
		p.read(t)
		p.write(t, 0, []byte("two"))
		m, err := p.socket.Recv(t.Context())
		if err != nil || len(m) != 2 || string(m[1]) != "two" {
			t.Errorf("received %q, %v", m, err)
		}
	})
}

// TestSilence checks that a peer that answers stays connected, and that one that does
// not is disconnected when interval and timeout have passed since its last message.
func TestSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, Dealer, Options{limits: beating(time.Second, 3*time.Second)}, 1, Router)
		began := time.Now()
		for i := range 10 {
			_, body := p.read(t)
			if !bytes.Equal(body, command(cmdPing, 0, 40)) {
				t.Fatalf("the heartbeat is %q", body)
			}
			if want := time.Duration(i+1) * time.Second; time.Since(began) != want {
				t.Fatalf("heartbeat %d after %v", i+1, time.Since(began))
			}
			p.write(t, flagCommand, command(cmdPong))
		}
		last := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = io.Copy(io.Discard, p.in) })
		e := <-p.events
		if e.Type != Disconnected || fault.CodeOf(e.Err) != fault.Timeout || time.Since(last) != 4*time.Second {
			t.Errorf("%v after %v: %v", e.Type, time.Since(last), e.Err)
		}
		wg.Wait()
	})
}

// TestTimeToLive checks that the TTL in a peer's PING can be shorter than our timeout.
func TestTimeToLive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, Router, Options{limits: beating(0, 0)}, 1, Dealer)
		time.Sleep(time.Hour) // without heartbeats silence has no limit
		p.write(t, flagCommand, command(cmdPing, 0, 15))
		p.read(t)
		asked := time.Now()
		e := <-p.events
		if e.Type != Disconnected || time.Since(asked) != 1500*time.Millisecond {
			t.Errorf("%v after %v: %v", e.Type, time.Since(asked), e.Err)
		}
	})
}

// TestOldPeersGetNoHeartbeats checks that a peer that uses ZMTP 3.0 gets no heartbeats
// until it sends one.
func TestOldPeersGetNoHeartbeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, Dealer, Options{limits: beating(time.Second, 2*time.Second)}, 0, Router)
		time.Sleep(time.Hour + time.Second/2) // between two heartbeats
		p.write(t, flagCommand, command(cmdPing, 0, 0))
		if _, body := p.read(t); !bytes.Equal(body, command(cmdPong)) {
			t.Fatalf("the first frame is %q", body)
		}
		if _, body := p.read(t); !bytes.Equal(body, ping(3*time.Second)) {
			t.Errorf("the second frame is %q", body)
		}
	})
}

// TestSlownessIsNotSilence checks that the peer does not count as silent while this end
// is slow to receive.
func TestSlownessIsNotSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		few := beating(time.Second, 2*time.Second)
		few.recvQueue = 1
		p := connect(t, Dealer, Options{limits: few}, 1, Router)
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = io.Copy(io.Discard, p.in) })
		for _, word := range []string{"one", "two"} {
			p.write(t, 0, []byte(word))
		}
		time.Sleep(time.Hour)
		for _, word := range []string{"one", "two"} {
			if m, err := p.socket.Recv(t.Context()); err != nil || string(m[0]) != word {
				t.Fatalf("received %q, %v", m, err)
			}
		}
		if len(p.events) != 0 {
			t.Errorf("event %+v", <-p.events)
		}
		p.Close()
		wg.Wait()
	})
}

// TestOldSubscriptions checks that a peer that uses ZMTP 3.0 gets subscriptions as messages.
func TestOldSubscriptions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, Sub, Options{}, 0, Pub)
		p.socket.Subscribe("a")
		if flags, body := p.read(t); flags != 0 || string(body) != "\x01a" {
			t.Errorf("subscribed by %#x %q", flags, body)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		p := connect(t, Pub, Options{}, 0, Sub)
		p.write(t, 0, []byte("\x01a"))
		if e := <-p.events; e.Type != Subscribed || e.Topic != "a" {
			t.Errorf("event %+v", e)
		}
		p.write(t, 0, []byte("\x00a"))
		if e := <-p.events; e.Type != Unsubscribed || e.Topic != "a" {
			t.Errorf("event %+v", e)
		}
	})
}

// TestUnsent checks that Send waits once the queue of a peer that does not read is full,
// and that messages that were never written are returned when the peer disconnects.
func TestUnsent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		few := beating(0, 0)
		few.sendQueue = 2
		p := connect(t, Dealer, Options{limits: few}, 1, Router)
		big := make([]byte, 1<<20) // more than the writer buffers
		for _, word := range []string{"written", "queued", "too"} {
			if err := p.socket.Send(t.Context(), Message{[]byte(word), big}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // the writer writes what it can
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := p.socket.Send(ctx, Message{big}); fault.CodeOf(err) != fault.Timeout {
			t.Fatalf("Send to a full queue: %v", err)
		}
		p.Close()
		e := <-p.events
		if e.Type != Disconnected || len(e.Unsent) != 2 || string(e.Unsent[0][0]) != "queued" || string(e.Unsent[1][0]) != "too" {
			t.Errorf("%v with %d messages unsent", e.Type, len(e.Unsent))
		}
	})
}
