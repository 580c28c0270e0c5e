package zmtp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// after is a good handshake of a DEALER followed by more.
func after(more ...byte) []byte {
	return append(append(greeting(), framed(flagCommand, ready(Dealer, "bad"))...), more...)
}

// framed is a frame as bytes.
func framed(flags byte, body []byte) []byte {
	var buf bytes.Buffer
	w := bufio.NewWriter(&buf)
	writeFrame(w, flags, body)
	_ = w.Flush()
	return buf.Bytes()
}

// repeat is many small frames.
func repeat(n int, flags byte, body string) []byte {
	return bytes.Repeat(framed(flags, []byte(body)), n)
}

// patched is a greeting with one byte changed.
func patched(at int, b byte) []byte {
	g := greeting()
	g[at] = b
	return g
}

// TestHostilePeers checks that invalid data ends at most the peer's own connection, and
// that the socket continues to serve others.
func TestHostilePeers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		sends []byte
		says  string // in the event's error
	}{
		"web browser":            {[]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "not ZMTP"},
		"binary noise":           {bytes.Repeat([]byte{0x80}, 100), "not ZMTP"},
		"ZMTP 2":                 {patched(10, 1), "before 3.0"},
		"wants CURVE":            {append(append(greeting()[:12], "CURVE"...), make([]byte, 47)...), `"CURVE"`},
		"message for READY":      {append(greeting(), framed(0, []byte("hi"))...), "a message instead"},
		"other command":          {append(greeting(), framed(flagCommand, command(cmdPing, 0, 0))...), "PING"},
		"refuses the connection": {append(greeting(), framed(flagCommand, refusal("go away"))...), "go away"},
		"no command":             {append(greeting(), framed(flagCommand, nil)...), "is incomplete"},
		"giant READY":            {append(greeting(), flagCommand|flagLong, 0, 0, 0, 0, 0xff, 0, 0, 0), "exceed the limit"},
		"long identity":          {append(greeting(), framed(flagCommand, ready(Dealer, strings.Repeat("x", 256)))...), "identity of 256"},
		"wrong kind":             {append(greeting(), framed(flagCommand, ready(Sub, ""))...), "cannot connect"},
		"property cut":           {append(greeting(), framed(flagCommand, command(cmdReady, 200, 'x'))...), "is incomplete"},
		"value cut":              {append(greeting(), framed(flagCommand, command(cmdReady, 1, 'x', 0xff, 0xff, 0xff, 0xff))...), "is incomplete"},
		"reserved bits":          {after(0x80, 0), "0x80"},
		"command with more":      {after(flagCommand|flagMore, 0), "0x05"},
		"giant frame":            {after(flagLong, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), "exceed the limit"},
		"frame over the limit":   {after(flagLong, 0, 0, 0, 0, 0, 0x10, 0, 1), "exceed the limit"},
		"too many frames":        {after(repeat(101, flagMore, "")...), "100 frames"},
		"too much in frames":     {after(repeat(60, flagMore, strings.Repeat("x", 20_000))...), "exceed the limit"},
		"short PING":             {after(framed(flagCommand, command(cmdPing, 1))...), "PING"},
		"long PING":              {after(framed(flagCommand, command(cmdPing, make([]byte, 19)...))...), "PING"},
		"late ERROR":             {after(framed(flagCommand, refusal("enough"))...), "enough"},
		"nameless command":       {after(framed(flagCommand, []byte{0})...), "is incomplete"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan Event, 10)
			s, err := Listen(t.Context(), Router, "tcp://127.0.0.1:0", Options{MaxMessage: 1 << 20, MaxFrames: 100, OnEvent: func(e Event) {
				if e.Type == Refused || e.Type == Disconnected {
					ended <- e
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.Addr(), "tcp://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, _ = conn.Write(tt.sends) // it may fail when the socket disconnects
			_, _ = io.Copy(io.Discard, conn)
			e := <-ended
			if e.Err == nil || !strings.Contains(e.Err.Error(), tt.says) || fault.CodeOf(e.Err) != fault.Upstream || fault.HintOf(e.Err) == "" {
				t.Errorf("ended with %v (%s)", e.Err, fault.CodeOf(e.Err))
			}
			good, err := Dial(t.Context(), Dealer, s.Addr(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer good.Close()
			if err := good.Send(t.Context(), Message{[]byte("hello")}); err != nil {
				t.Fatal(err)
			}
			if m, err := s.Recv(t.Context()); err != nil || string(m[1]) != "hello" {
				t.Errorf("others receive %q, %v", m, err)
			}
		})
	}
}

// TestHostileSubscriber checks that a subscriber with too many topics is disconnected.
func TestHostileSubscriber(t *testing.T) {
	t.Parallel()
	tests := map[string][]byte{
		"too many topics": bytes.Join([][]byte{
			framed(flagCommand, command(cmdSubscribe, 'a')),
			framed(0, []byte("\x01b")),
			framed(flagCommand, command(cmdSubscribe, 'a')), // known already
			framed(flagCommand, command("JOIN", 'x')),       // not ours
			framed(0, []byte("what?")),                      // not a subscription
			framed(flagCommand, command(cmdSubscribe, 'c')),
		}, nil),
		"long topic": framed(flagCommand, command(cmdSubscribe, make([]byte, maxTopic+1)...)),
	}
	for name, sends := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				few := defaultLimits()
				few.topics = 2
				p := connect(t, Pub, Options{limits: few}, 1, Sub)
				_, _ = p.Write(sends)
				for e := range p.events {
					if e.Type == Disconnected {
						if fault.CodeOf(e.Err) != fault.Upstream {
							t.Errorf("ended with %v", e.Err)
						}
						return
					}
				}
			})
		})
	}
}

// TestSlowLoris checks that a handshake that does not finish fails after
// the limit, even if the peer continues to send.
func TestSlowLoris(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		began := time.Now()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = io.ReadFull(far, make([]byte, greetingSize))
			for _, b := range greeting() {
				if _, err := far.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		brief := defaultLimits()
		brief.handshake = 5 * time.Second
		opts := Options{limits: brief}.filled()
		_, err := newLink(near, &handshake{kind: Router}, &opts)
		if fault.CodeOf(err) != fault.Timeout || time.Since(began) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		near.Close()
		<-done
	})
}

// TestAnnouncingIsFree checks that announcing a large frame takes no memory until its
// bytes arrive.
func TestAnnouncingIsFree(t *testing.T) {
	in := bufio.NewReader(bytes.NewReader([]byte{flagLong, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 'x'}))
	var before, since runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := readFrame(in, 1<<31)
	runtime.ReadMemStats(&since)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("read: %v", err)
	}
	if took := since.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("took %d bytes", took)
	}
}

// FuzzLink reads arbitrary bytes after the greeting of a peer.
func FuzzLink(f *testing.F) {
	f.Add(after(framed(0, []byte("hello"))...)[greetingSize:])
	f.Add(after(repeat(3, flagMore, "x")...)[greetingSize:])
	f.Add(after(framed(flagCommand, command(cmdPing, 0, 1, 'x'))...)[greetingSize:])
	f.Add(after(framed(flagCommand, command(cmdSubscribe, 'x'))...)[greetingSize:])
	opts := Options{MaxMessage: 1 << 16, MaxFrames: 16}.filled()
	f.Fuzz(func(t *testing.T, data []byte) {
		in := bufio.NewReader(bytes.NewReader(data))
		var peer Peer
		theirs, err := exchange{in: in}.receive(cmdReady, 0)
		if err != nil || peer.read(theirs) != nil {
			return
		}
		s := &Socket{kind: Router, opts: opts, peers: newPeers()}
		l := &link{conn: &timedConn{}, in: in, opts: &opts, wake: make(chan struct{}, 1), prefix: []byte(peer.Identity)}
		for {
			m, err := l.message(router{s})
			if err != nil {
				return
			}
			if len(m) < 2 || len(m) > 17 || m.size() > 1<<16+len(m)*frameCost+255 {
				t.Fatalf("a message of %d frames, %d bytes", len(m), m.size())
			}
		}
	})
}

// FuzzCurve sends arbitrary bytes to both ends of the handshake with keys, and to the
// cipher after it.
func FuzzCurve(f *testing.F) {
	server := NewSecretKey()
	f.Add(framed(flagCommand, command(cmdHello, make([]byte, helloSize)...)))
	f.Add(framed(flagCommand, command(cmdWelcome, make([]byte, welcomeSize)...)))
	f.Add(framed(0, append([]byte(messagePrefix), make([]byte, 40)...)))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, listens := range []bool{true, false} {
			h := handshake{kind: Router, listens: listens, curve: &Curve{Secret: server, Server: server.Public()}}
			if _, _, err := h.introduce(exchange{bufio.NewReader(bytes.NewReader(data)), bufio.NewWriter(io.Discard)}); err == nil {
				t.Fatalf("%q was accepted", data)
			}
		}
		c := cipher{shared: precompute(server.Public(), server), opened: fromClient}
		if _, body, err := c.open(data); err == nil {
			t.Fatalf("%q was decrypted to %q", data, body)
		}
	})
}
