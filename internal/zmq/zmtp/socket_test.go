package zmtp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/luanette/luanette/internal/base/backoff"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
)

func TestMain(m *testing.M) {
	clocktest.SetParallel()
	goleak.VerifyTestMain(clocktest.Settled(m))
}

const anyPort = "tcp://127.0.0.1:0"

// soon retries faster than the defaults.
var soon = backoff.Policy{First: time.Millisecond, Max: 20 * time.Millisecond}

// watch records events, and lets a test wait for one.
type watch struct{ events chan Event }

func newWatch() watch { return watch{make(chan Event, 100_000)} }

func (w watch) on(e Event) { w.events <- e }

// next waits for the next event of a kind and drops those before it.
func (w watch) next(t *testing.T, what EventType) Event {
	t.Helper()
	for {
		select {
		case e := <-w.events:
			if e.Type == what {
				return e
			}
		case <-t.Context().Done():
			t.Fatalf("no %v", what)
		}
	}
}

func listen(t *testing.T, kind Kind, addr string, opts Options) *Socket {
	t.Helper()
	s, err := Listen(t.Context(), kind, addr, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func dial(t *testing.T, kind Kind, addr string, opts Options) *Socket {
	t.Helper()
	if opts.Reconnect == (backoff.Policy{}) {
		opts.Reconnect = soon
	}
	s, err := Dial(t.Context(), kind, addr, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func text(frames ...string) Message {
	m := make(Message, len(frames))
	for i, f := range frames {
		m[i] = []byte(f)
	}
	return m
}

func send(t *testing.T, s *Socket, frames ...string) {
	t.Helper()
	if err := s.Send(t.Context(), text(frames...)); err != nil {
		t.Fatalf("Send(%.40q): %v", frames, err)
	}
}

func expect(t *testing.T, s *Socket, frames ...string) {
	t.Helper()
	m, err := s.Recv(t.Context())
	if err != nil {
		t.Fatalf("Recv: %v", err)
	}
	if want := text(frames...); !slices.EqualFunc(m, want, bytes.Equal) {
		t.Fatalf("received %.80q, want %.80q", m, want)
	}
}

// expectFrom expects a message of any peer of a ROUTER, and returns which one it was.
func expectFrom(t *testing.T, s *Socket, frames ...string) string {
	t.Helper()
	m, err := s.Recv(t.Context())
	if err != nil {
		t.Fatalf("Recv: %v", err)
	}
	if want := text(frames...); !slices.EqualFunc(m[1:], want, bytes.Equal) {
		t.Fatalf("received %.80q, want %.80q", m[1:], want)
	}
	return string(m[0])
}

// echo answers every message of a ROUTER or DEALER until it is closed.
func echo(t *testing.T, s *Socket) {
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			m, err := s.Recv(context.WithoutCancel(t.Context()))
			if err != nil {
				return
			}
			_ = s.Send(t.Context(), m)
		}
	})
	t.Cleanup(func() { s.Close(); wg.Wait() })
}

func TestDealerAndRouter(t *testing.T) {
	t.Parallel()
	addrs := map[string]string{"tcp": anyPort, "ipc": "ipc://" + filepath.Join(t.TempDir(), "socket")}
	for name, addr := range addrs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := newWatch()
			router := listen(t, Router, addr, Options{OnEvent: seen.on})
			dealer := dial(t, Dealer, router.Addr(), Options{})
			peer := seen.next(t, Connected).Peer
			if peer.Kind != "DEALER" || peer.Minor != 1 {
				t.Errorf("the router sees %+v", peer)
			}
			send(t, dealer, "one", "", strings.Repeat("x", 255), strings.Repeat("y", 256))
			expect(t, router, peer.Identity, "one", "", strings.Repeat("x", 255), strings.Repeat("y", 256))
			send(t, router, peer.Identity, "two")
			expect(t, dealer, "two")
		})
	}
}

func TestGeneratedIdentitiesAreUnique(t *testing.T) {
	t.Parallel()
	router := listen(t, Router, anyPort, Options{})
	known := map[string]bool{}
	for range 5 {
		dealer := dial(t, Dealer, router.Addr(), Options{})
		send(t, dealer, "question")
		m, err := router.Recv(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if known[string(m[0])] || m[0][0] != 0 {
			t.Fatalf("the identity %q", m[0])
		}
		known[string(m[0])] = true
		send(t, router, string(m[0]), "answer")
		expect(t, dealer, "answer")
	}
}

// TestIdentityInUse checks that a second peer of a name is refused until the first one
// disconnects.
func TestIdentityInUse(t *testing.T) {
	t.Parallel()
	seen := newWatch()
	router := listen(t, Router, anyPort, Options{OnEvent: seen.on})
	join := func() net.Conn {
		conn, err := net.Dial("tcp", strings.TrimPrefix(router.Addr(), "tcp://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if _, err := conn.Write(after()); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	first := join()
	seen.next(t, Connected)
	join()
	if e := seen.next(t, Refused); fault.CodeOf(e.Err) != fault.Conflict || fault.HintOf(e.Err) == "" {
		t.Errorf("refused with %v", e.Err)
	}
	send(t, router, "bad", "for the first")
	first.Close()
	seen.next(t, Disconnected)
	join()
	seen.next(t, Connected)
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	router := listen(t, Router, anyPort, Options{})
	for range 4 {
		echo(t, router)
	}
	const clients, senders, each = 4, 4, 250
	var wg sync.WaitGroup
	for c := range clients {
		dealer := dial(t, Dealer, router.Addr(), Options{})
		var mu sync.Mutex
		got := map[string]int{}
		for n := range senders {
			wg.Go(func() {
				for i := range each {
					send(t, dealer, fmt.Sprintf("%d/%d/%d", c, n, i), strings.Repeat("z", i))
				}
			})
			wg.Go(func() {
				for range each {
					m, err := dealer.Recv(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					got[string(m[0])]++
					mu.Unlock()
				}
			})
		}
		t.Cleanup(func() {
			if len(got) != senders*each {
				t.Errorf("client %d got %d different answers, want %d", c, len(got), senders*each)
			}
		})
	}
	wg.Wait()
}

func TestPubAndSub(t *testing.T) {
	t.Parallel()
	seen := newWatch()
	pub := listen(t, Pub, anyPort, Options{OnEvent: seen.on})
	sub := dial(t, Sub, pub.Addr(), Options{})
	sub.Subscribe("job.")
	if e := seen.next(t, Subscribed); e.Topic != "job." {
		t.Fatalf("the publisher received topic %q", e.Topic)
	}
	send(t, pub, "log.x", "not wanted")
	send(t, pub, "job.1", "wanted")
	expect(t, sub, "job.1", "wanted")

	sub.Subscribe("")
	seen.next(t, Subscribed)
	send(t, pub, "log.x", "now wanted")
	expect(t, sub, "log.x", "now wanted")
}

// TestReconnect checks that a socket reconnects to a peer that listens again on the same
// address, with the same subscriptions.
func TestReconnect(t *testing.T) {
	t.Parallel()
	addr := "ipc://" + filepath.Join(t.TempDir(), "socket")
	pubAddr := "ipc://" + filepath.Join(t.TempDir(), "socket")
	connected := newWatch()
	dealer := dial(t, Dealer, addr, Options{OnEvent: connected.on})
	sub := dial(t, Sub, pubAddr, Options{})
	sub.Subscribe("tick")
	for round := range 20 {
		word := fmt.Sprint(round)
		seen := newWatch()
		router := listen(t, Router, addr, Options{})
		pub := listen(t, Pub, pubAddr, Options{OnEvent: seen.on})
		connected.next(t, Connected) // the dealer may not have noticed the end of the old connection before
		send(t, dealer, word)
		m, err := router.Recv(t.Context())
		if err != nil || string(m[1]) != word {
			t.Fatalf("received %q, %v", m, err)
		}
		send(t, router, string(m[0]), word)
		expect(t, dealer, word)
		seen.next(t, Subscribed)
		send(t, pub, "tick "+word)
		expect(t, sub, "tick "+word)
		router.Close()
		pub.Close()
	}
}

func TestSendWaitsForAPeer(t *testing.T) {
	t.Parallel()
	addr := "ipc://" + filepath.Join(t.TempDir(), "socket")
	dealer := dial(t, Dealer, addr, Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	bored := errors.New("bored")
	cancel(bored)
	if err := dealer.Send(ctx, text("x")); !errors.Is(err, bored) || fault.CodeOf(err) != fault.Cancelled {
		t.Errorf("Send without a peer: %v", err)
	}
	if err := dealer.Ready(ctx); !errors.Is(err, bored) {
		t.Errorf("Ready without a peer: %v", err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { send(t, dealer, "hello") })
	router := listen(t, Router, addr, Options{})
	expectFrom(t, router, "hello")
	if err := router.Send(t.Context(), text("nobody", "hello")); !errors.Is(err, ErrNoPeer) {
		t.Errorf("Send to an unknown peer: %v", err)
	}
}

// TestSlowPeers checks that a subscriber that does not read delays neither the PUB nor
// others.
func TestSlowPeers(t *testing.T) {
	t.Parallel()
	small := defaultLimits()
	small.sendQueue, small.recvQueue, small.recvBytes = 2, 1, 1
	seen := newWatch()
	pub := listen(t, Pub, anyPort, Options{OnEvent: seen.on, limits: small})
	ended, end := context.WithCancel(t.Context())
	slow := dial(t, Sub, pub.Addr(), Options{limits: small, OnEvent: func(e Event) {
		if e.Type == Disconnected {
			end()
		}
	}})
	quick := dial(t, Sub, pub.Addr(), Options{})
	for _, s := range []*Socket{slow, quick} {
		s.Subscribe("")
		seen.next(t, Subscribed)
	}
	const messages = 200 // far more than the network takes
	big := strings.Repeat("x", 1<<20)
	for i := range messages {
		send(t, pub, fmt.Sprint(i), big)
		expect(t, quick, fmt.Sprint(i), big)
	}
	pub.Close()
	received := 0
	for _, err := slow.Recv(ended); err == nil; _, err = slow.Recv(ended) {
		received++
	}
	if received == messages {
		t.Error("a PUB waited for a subscriber that did not read")
	}
}

// TestFlushThenClose checks that Close drops queued messages and Flush waits for them.
func TestFlushThenClose(t *testing.T) {
	t.Parallel()
	router := listen(t, Router, anyPort, Options{})
	dealer := dial(t, Dealer, router.Addr(), Options{})
	for i := range 500 {
		send(t, dealer, fmt.Sprint(i))
	}
	if err := dealer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	dealer.Close()
	for i := range 500 {
		expectFrom(t, router, fmt.Sprint(i))
	}
}

func TestClosedSockets(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dealer, err := Dial(ctx, Dealer, "ipc://"+filepath.Join(t.TempDir(), "no-listener"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := dealer.Recv(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("Recv: %v", err)
		}
	})
	wg.Go(func() {
		if err := dealer.Send(t.Context(), text("x")); !errors.Is(err, ErrClosed) {
			t.Errorf("Send: %v", err)
		}
	})
	cancel() // the context of Dial closes the socket too
	wg.Wait()
	dealer.Close()
	dealer.Close()
	if err := dealer.Ready(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("Ready: %v", err)
	}
}

func TestBadEndpoints(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"", "tcp://", "tcp://host", "ipc://", "udp://1.2.3.4:5", "127.0.0.1:80", "tcp://::1:80"} {
		_, err := Dial(t.Context(), Dealer, addr, Options{})
		if fault.CodeOf(err) != fault.InvalidParams || fault.HintOf(err) == "" {
			t.Errorf("Dial(%q): %v", addr, err)
		}
	}
	taken := listen(t, Router, anyPort, Options{})
	if _, err := Listen(t.Context(), Router, taken.Addr(), Options{}); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("Listen on a port in use: %v", err)
	}
	if _, err := Listen(t.Context(), Dealer, anyPort, Options{}); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("a Dealer listens: %v", err)
	}
	if _, err := Dial(t.Context(), Pub, taken.Addr(), Options{}); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("a Pub dials: %v", err)
	}
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	sub := dial(t, Sub, "ipc://"+filepath.Join(t.TempDir(), "no-listener"), Options{})
	if err := sub.Send(t.Context(), text("x")); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("Send on a SUB: %v", err)
	}
	if err := sub.Send(t.Context(), nil); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("Send of nothing: %v", err)
	}
}

func TestIncompatibleKinds(t *testing.T) {
	t.Parallel()
	here, there := newWatch(), newWatch()
	pub := listen(t, Pub, anyPort, Options{OnEvent: here.on})
	_ = dial(t, Dealer, pub.Addr(), Options{OnEvent: there.on})
	for _, w := range []watch{here, there} {
		if e := w.next(t, Refused); fault.CodeOf(e.Err) != fault.Upstream || fault.HintOf(e.Err) == "" {
			t.Errorf("refused with %v", e.Err)
		}
	}
}

func TestNoListener(t *testing.T) {
	t.Parallel()
	seen := newWatch()
	_ = dial(t, Dealer, "ipc://"+filepath.Join(t.TempDir(), "no-listener"), Options{OnEvent: seen.on, Reconnect: backoff.Policy{First: time.Millisecond, Max: 4 * time.Millisecond}})
	for _, want := range []time.Duration{1, 2, 4, 4} {
		if e := seen.next(t, Refused); e.Retry != want*time.Millisecond || fault.CodeOf(e.Err) != fault.Unavailable {
			t.Errorf("retry in %v after %v, want %dms", e.Retry, e.Err, want)
		}
	}
}

func TestTooManyPeers(t *testing.T) {
	t.Parallel()
	seen, one := newWatch(), defaultLimits()
	one.peers = 1
	router := listen(t, Router, anyPort, Options{OnEvent: seen.on, limits: one})
	first := dial(t, Dealer, router.Addr(), Options{})
	seen.next(t, Connected)
	second := dial(t, Dealer, router.Addr(), Options{})
	if e := seen.next(t, Refused); fault.CodeOf(e.Err) != fault.Limit {
		t.Errorf("refused with %v", e.Err)
	}
	first.Close()
	send(t, second, "connected now")
	expectFrom(t, router, "connected now")
}
