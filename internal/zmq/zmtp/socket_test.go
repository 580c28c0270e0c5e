package zmtp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	"github.com/luanette/luanette/internal/zmq/zmtp"
)

func TestMain(m *testing.M) {
	clocktest.SetParallel()
	goleak.VerifyTestMain(clocktest.Settled(m))
}

const anyPort = "tcp://127.0.0.1:0"

// soon retries faster than the defaults.
var soon = backoff.Policy{First: time.Millisecond, Max: 20 * time.Millisecond}

// watch records events, and lets a test wait for one.
type watch struct{ events chan zmtp.Event }

func newWatch() watch { return watch{make(chan zmtp.Event, 100_000)} }

func (w watch) on(e zmtp.Event) { w.events <- e }

// next waits for the next event of a kind and drops those before it.
func (w watch) next(t *testing.T, what zmtp.EventType) zmtp.Event {
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

func listen(t *testing.T, kind zmtp.Kind, addr string, opts zmtp.Options) *zmtp.Socket {
	t.Helper()
	s, err := zmtp.Listen(t.Context(), kind, addr, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func dial(t *testing.T, kind zmtp.Kind, addr string, opts zmtp.Options) *zmtp.Socket {
	t.Helper()
	if opts.Reconnect == (backoff.Policy{}) {
		opts.Reconnect = soon
	}
	s, err := zmtp.Dial(t.Context(), kind, addr, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func text(frames ...string) zmtp.Message {
	m := make(zmtp.Message, len(frames))
	for i, f := range frames {
		m[i] = []byte(f)
	}
	return m
}

func send(t *testing.T, s *zmtp.Socket, frames ...string) {
	t.Helper()
	if err := s.Send(t.Context(), text(frames...)); err != nil {
		t.Fatalf("Send(%.40q): %v", frames, err)
	}
}

func expect(t *testing.T, s *zmtp.Socket, frames ...string) {
	t.Helper()
	m, err := s.Recv(t.Context())
	if err != nil {
		t.Fatalf("Recv: %v", err)
	}
	if want := text(frames...); !slices.EqualFunc(m, want, bytes.Equal) {
		t.Fatalf("received %.80q, want %.80q", m, want)
	}
}

// echo answers every message of a ROUTER or DEALER until it is closed.
func echo(t *testing.T, s *zmtp.Socket) {
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
			router := listen(t, zmtp.Router, addr, zmtp.Options{})
			dealer := dial(t, zmtp.Dealer, router.Addr(), zmtp.Options{Identity: "ann"})
			send(t, dealer, "one", "", strings.Repeat("x", 255), strings.Repeat("y", 256))
			expect(t, router, "ann", "one", "", strings.Repeat("x", 255), strings.Repeat("y", 256))
			send(t, router, "ann", "two")
			expect(t, dealer, "two")
			peer := router.Peers()[0]
			if peer.Identity != "ann" || peer.Kind != "DEALER" || peer.Minor != 1 {
				t.Errorf("the router sees %+v", peer)
			}
		})
	}
}

func TestRouterDials(t *testing.T) {
	t.Parallel()
	dealer := listen(t, zmtp.Dealer, anyPort, zmtp.Options{Identity: "bob"})
	seen := newWatch()
	router := dial(t, zmtp.Router, dealer.Addr(), zmtp.Options{OnEvent: seen.on})
	seen.next(t, zmtp.Connected)
	send(t, router, "bob", "hello")
	expect(t, dealer, "hello")
}

func TestDealerRoundRobin(t *testing.T) {
	t.Parallel()
	seen := newWatch()
	dealer := listen(t, zmtp.Dealer, anyPort, zmtp.Options{OnEvent: seen.on})
	workers := [3]*zmtp.Socket{}
	for i := range workers {
		workers[i] = dial(t, zmtp.Dealer, dealer.Addr(), zmtp.Options{})
		seen.next(t, zmtp.Connected)
	}
	for range workers {
		send(t, dealer, "job")
	}
	for _, w := range workers {
		expect(t, w, "job")
	}
}

func TestGeneratedIdentitiesAreUnique(t *testing.T) {
	t.Parallel()
	router := listen(t, zmtp.Router, anyPort, zmtp.Options{})
	known := map[string]bool{}
	for range 5 {
		dealer := dial(t, zmtp.Dealer, router.Addr(), zmtp.Options{})
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

func TestIdentityInUse(t *testing.T) {
	t.Parallel()
	t.Run("is refused until its owner disconnects", func(t *testing.T) {
		t.Parallel()
		router := listen(t, zmtp.Router, anyPort, zmtp.Options{})
		first := dial(t, zmtp.Dealer, router.Addr(), zmtp.Options{Identity: "ann"})
		send(t, first, "first")
		expect(t, router, "ann", "first")
		seen := newWatch()
		second := dial(t, zmtp.Dealer, router.Addr(), zmtp.Options{Identity: "ann", OnEvent: seen.on})
		seen.next(t, zmtp.Disconnected)
		send(t, router, "ann", "for the first")
		expect(t, first, "for the first")
		first.Close()
		for { // it may be refused once more before the router notices
			send(t, second, "second")
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			m, err := router.Recv(ctx)
			cancel()
			if err == nil && string(m[1]) == "second" {
				return
			}
		}
	})
	t.Run("is handed over with Handover", func(t *testing.T) {
		t.Parallel()
		router := listen(t, zmtp.Router, anyPort, zmtp.Options{Handover: true})
		lost := newWatch()
		// The first one reconnects only after a long time.
		first := dial(t, zmtp.Dealer, router.Addr(), zmtp.Options{Identity: "ann", OnEvent: lost.on, Reconnect: backoff.Policy{First: time.Hour}})
		send(t, first, "first")
		expect(t, router, "ann", "first")
		second := dial(t, zmtp.Dealer, router.Addr(), zmtp.Options{Identity: "ann"})
		lost.next(t, zmtp.Disconnected)
		send(t, second, "second")
		expect(t, router, "ann", "second")
		send(t, router, "ann", "answer")
		expect(t, second, "answer")
	})
}

func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	router := listen(t, zmtp.Router, anyPort, zmtp.Options{Overflow: zmtp.Wait})
	for range 4 {
		echo(t, router)
	}
	const clients, senders, each = 4, 4, 250
	var wg sync.WaitGroup
	for c := range clients {
		dealer := dial(t, zmtp.Dealer, router.Addr(), zmtp.Options{})
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
	pub := listen(t, zmtp.Pub, anyPort, zmtp.Options{OnEvent: seen.on})
	sub := dial(t, zmtp.Sub, pub.Addr(), zmtp.Options{})
	sub.Subscribe("job.")
	if e := seen.next(t, zmtp.Subscribed); e.Topic != "job." {
		t.Fatalf("the publisher received topic %q", e.Topic)
	}
	send(t, pub, "log.x", "not wanted")
	send(t, pub, "job.1", "wanted")
	expect(t, sub, "job.1", "wanted")

	sub.Subscribe("")
	seen.next(t, zmtp.Subscribed)
	send(t, pub, "log.x", "now wanted")
	expect(t, sub, "log.x", "now wanted")

	sub.Unsubscribe("")
	if e := seen.next(t, zmtp.Unsubscribed); e.Topic != "" {
		t.Fatalf("the publisher received the end of topic %q", e.Topic)
	}
	send(t, pub, "log.x", "not wanted again")
	send(t, pub, "job.2")
	expect(t, sub, "job.2")
}

func TestPubDials(t *testing.T) {
	t.Parallel()
	sub := listen(t, zmtp.Sub, anyPort, zmtp.Options{})
	sub.Subscribe("a")
	seen := newWatch()
	pub := dial(t, zmtp.Pub, sub.Addr(), zmtp.Options{OnEvent: seen.on})
	seen.next(t, zmtp.Subscribed)
	send(t, pub, "b")
	send(t, pub, "a")
	expect(t, sub, "a")
}

// TestReconnect checks that a socket reconnects to a peer that listens again on the same
// address, with the same subscriptions and the same identity.
func TestReconnect(t *testing.T) {
	t.Parallel()
	addr := "ipc://" + filepath.Join(t.TempDir(), "socket")
	pubAddr := "ipc://" + filepath.Join(t.TempDir(), "socket")
	dealer := dial(t, zmtp.Dealer, addr, zmtp.Options{Identity: "ann"})
	sub := dial(t, zmtp.Sub, pubAddr, zmtp.Options{})
	sub.Subscribe("tick")
	for round := range 20 {
		word := fmt.Sprint(round)
		seen := newWatch()
		router := listen(t, zmtp.Router, addr, zmtp.Options{})
		pub := listen(t, zmtp.Pub, pubAddr, zmtp.Options{OnEvent: seen.on})
		if err := router.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		send(t, router, "ann", word) // the router sends first: the dealer may not have noticed the end of the old connection
		expect(t, dealer, word)
		send(t, dealer, word)
		expect(t, router, "ann", word)
		seen.next(t, zmtp.Subscribed)
		send(t, pub, "tick "+word)
		expect(t, sub, "tick "+word)
		router.Close()
		pub.Close()
	}
}

func TestSendWaitsForAPeer(t *testing.T) {
	t.Parallel()
	addr := "ipc://" + filepath.Join(t.TempDir(), "socket")
	dealer := dial(t, zmtp.Dealer, addr, zmtp.Options{Identity: "ann"})
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
	router := listen(t, zmtp.Router, addr, zmtp.Options{})
	expect(t, router, "ann", "hello")
}

func TestOverflow(t *testing.T) {
	t.Parallel()
	router := func(t *testing.T, o zmtp.Overflow) *zmtp.Socket {
		return listen(t, zmtp.Router, anyPort, zmtp.Options{Overflow: o})
	}
	tests := map[string]struct {
		open    func(t *testing.T) *zmtp.Socket
		want    error
		dropped uint64
	}{
		"a router drops for an unknown peer": {func(t *testing.T) *zmtp.Socket { return router(t, zmtp.ByKind) }, nil, 1},
		"a router refuses":                   {func(t *testing.T) *zmtp.Socket { return router(t, zmtp.Refuse) }, zmtp.ErrNoPeer, 0},
		"a router does not wait":             {func(t *testing.T) *zmtp.Socket { return router(t, zmtp.Wait) }, zmtp.ErrNoPeer, 0},
		"a dealer without peers drops": {func(t *testing.T) *zmtp.Socket {
			return listen(t, zmtp.Dealer, anyPort, zmtp.Options{Overflow: zmtp.Drop})
		}, nil, 1},
		"a dealer refuses": {func(t *testing.T) *zmtp.Socket {
			return listen(t, zmtp.Dealer, anyPort, zmtp.Options{Overflow: zmtp.Refuse})
		}, zmtp.ErrNoPeer, 0},
		"pub without subscribers": {func(t *testing.T) *zmtp.Socket { return listen(t, zmtp.Pub, anyPort, zmtp.Options{}) }, nil, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tt.open(t)
			if err := s.Send(t.Context(), text("who", "what")); !errors.Is(err, tt.want) {
				t.Errorf("Send: %v, want %v", err, tt.want)
			}
			if s.Dropped() != tt.dropped {
				t.Errorf("dropped %d, want %d", s.Dropped(), tt.dropped)
			}
		})
	}
}

// TestSlowPeers checks that a peer that does not read fills only its queue and the network's.
func TestSlowPeers(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("x", 1<<20)
	small := zmtp.Options{RecvQueue: 1, RecvBytes: 1}
	t.Run("a pub drops messages", func(t *testing.T) {
		t.Parallel()
		seen := newWatch()
		pub := listen(t, zmtp.Pub, anyPort, zmtp.Options{SendQueue: 2, OnEvent: seen.on})
		slow, quick := dial(t, zmtp.Sub, pub.Addr(), small), dial(t, zmtp.Sub, pub.Addr(), zmtp.Options{})
		for _, s := range []*zmtp.Socket{slow, quick} {
			s.Subscribe("")
			seen.next(t, zmtp.Subscribed)
		}
		for i := 0; pub.Dropped() == 0; i++ {
			send(t, pub, fmt.Sprint(i), big)
			expect(t, quick, fmt.Sprint(i), big)
		}
	})
	t.Run("a router refuses", func(t *testing.T) {
		t.Parallel()
		router := listen(t, zmtp.Router, anyPort, zmtp.Options{SendBytes: 1, Overflow: zmtp.Refuse})
		_ = dial(t, zmtp.Dealer, router.Addr(), zmtp.Options{Identity: "slow", RecvQueue: 1, RecvBytes: 1})
		if err := router.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		var err error
		for err == nil {
			if err = router.Send(t.Context(), text("slow", big)); err == nil {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				_ = router.Flush(ctx) // there is space as long as the network takes more
				cancel()
			}
		}
		if !errors.Is(err, zmtp.ErrFull) || fault.CodeOf(err) != fault.Limit || fault.HintOf(err) == "" {
			t.Errorf("Send: %v (hint %q)", err, fault.HintOf(err))
		}
	})
}

// TestFlushThenClose checks that Close drops queued messages and Flush waits for them.
func TestFlushThenClose(t *testing.T) {
	t.Parallel()
	router := listen(t, zmtp.Router, anyPort, zmtp.Options{})
	dealer := dial(t, zmtp.Dealer, router.Addr(), zmtp.Options{Identity: "ann"})
	for i := range 500 {
		send(t, dealer, fmt.Sprint(i))
	}
	if err := dealer.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	dealer.Close()
	for i := range 500 {
		expect(t, router, "ann", fmt.Sprint(i))
	}
}

func TestClosedSockets(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dealer, err := zmtp.Dial(ctx, zmtp.Dealer, "ipc://"+filepath.Join(t.TempDir(), "no-listener"), zmtp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := dealer.Recv(t.Context()); !errors.Is(err, zmtp.ErrClosed) {
			t.Errorf("Recv: %v", err)
		}
	})
	wg.Go(func() {
		if err := dealer.Send(t.Context(), text("x")); !errors.Is(err, zmtp.ErrClosed) {
			t.Errorf("Send: %v", err)
		}
	})
	cancel() // the context of Dial closes the socket too
	wg.Wait()
	dealer.Close()
	dealer.Close()
	if err := dealer.Ready(t.Context()); !errors.Is(err, zmtp.ErrClosed) {
		t.Errorf("Ready: %v", err)
	}
}

func TestBadEndpoints(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{"", "tcp://", "tcp://host", "ipc://", "udp://1.2.3.4:5", "127.0.0.1:80", "tcp://::1:80"} {
		_, err := zmtp.Dial(t.Context(), zmtp.Dealer, addr, zmtp.Options{})
		if fault.CodeOf(err) != fault.InvalidParams || fault.HintOf(err) == "" {
			t.Errorf("Dial(%q): %v", addr, err)
		}
	}
	taken := listen(t, zmtp.Router, anyPort, zmtp.Options{})
	if _, err := zmtp.Listen(t.Context(), zmtp.Router, taken.Addr(), zmtp.Options{}); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("Listen on a port in use: %v", err)
	}
	for _, opts := range []zmtp.Options{{Identity: "\x00a"}, {Identity: strings.Repeat("a", 256)}} {
		if _, err := zmtp.Listen(t.Context(), zmtp.Router, anyPort, opts); fault.CodeOf(err) != fault.InvalidParams {
			t.Errorf("identity %.10q: %v", opts.Identity, err)
		}
	}
	if _, err := zmtp.Listen(t.Context(), 0, anyPort, zmtp.Options{}); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("no kind: %v", err)
	}
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	sub := listen(t, zmtp.Sub, anyPort, zmtp.Options{})
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
	pub := listen(t, zmtp.Pub, anyPort, zmtp.Options{OnEvent: here.on})
	_ = dial(t, zmtp.Dealer, pub.Addr(), zmtp.Options{OnEvent: there.on})
	for _, w := range []watch{here, there} {
		if e := w.next(t, zmtp.Refused); fault.CodeOf(e.Err) != fault.Upstream || fault.HintOf(e.Err) == "" {
			t.Errorf("refused with %v", e.Err)
		}
	}
}

func TestNoListener(t *testing.T) {
	t.Parallel()
	seen := newWatch()
	_ = dial(t, zmtp.Dealer, "ipc://"+filepath.Join(t.TempDir(), "no-listener"), zmtp.Options{OnEvent: seen.on, Reconnect: backoff.Policy{First: time.Millisecond, Max: 4 * time.Millisecond}})
	for _, want := range []time.Duration{1, 2, 4, 4} {
		if e := seen.next(t, zmtp.Refused); e.Retry != want*time.Millisecond || fault.CodeOf(e.Err) != fault.Unavailable {
			t.Errorf("retry in %v after %v, want %dms", e.Retry, e.Err, want)
		}
	}
}

func TestTooManyPeers(t *testing.T) {
	t.Parallel()
	seen := newWatch()
	router := listen(t, zmtp.Router, anyPort, zmtp.Options{MaxPeers: 1, OnEvent: seen.on})
	first := dial(t, zmtp.Dealer, router.Addr(), zmtp.Options{})
	seen.next(t, zmtp.Connected)
	second := dial(t, zmtp.Dealer, router.Addr(), zmtp.Options{Identity: "second"})
	if e := seen.next(t, zmtp.Refused); fault.CodeOf(e.Err) != fault.Limit {
		t.Errorf("refused with %v", e.Err)
	}
	first.Close()
	send(t, second, "connected now")
	expect(t, router, "second", "connected now")
}
