package zmtp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
)

// python is the interpreter Debian's python3-zmq belongs to.
const python = "/usr/bin/python3"

// hasZMQ checks once whether libzmq is installed.
var hasZMQ = sync.OnceValue(func() error {
	out, err := exec.Command(python, "-c", "import zmq").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
})

// libzmqPeer is a process with a libzmq socket.
type libzmqPeer struct {
	addr  string
	lines chan string // its output
	stop  func()
}

// start runs testdata/peer.py in a role and waits until its socket is open.
func start(t testing.TB, args ...string) *libzmqPeer {
	t.Helper()
	return startWith(t, nil, args...)
}

// startWith is start with additional variables in the environment.
func startWith(t testing.TB, env []string, args ...string) *libzmqPeer {
	t.Helper()
	if err := hasZMQ(); err != nil {
		t.Skipf("no python3-zmq (apt-get install python3-zmq): %v", err)
	}
	cmd := exec.Command(python, append([]string{"testdata/peer.py"}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n := &libzmqPeer{lines: make(chan string, 1000)}
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(n.lines)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			n.lines <- lines.Text()
		}
		_, _ = io.Copy(io.Discard, stdout)
	})
	n.stop = sync.OnceFunc(func() {
		stdin.Close()
		reader.Wait()
		if err := cmd.Wait(); err != nil {
			t.Errorf("peer.py: %v\n%s", err, complaints.String())
		}
	})
	t.Cleanup(n.stop)
	n.addr, _ = strings.CutPrefix(n.waitLine(t, "on "), "on ")
	return n
}

// waitLine waits for the next line with that prefix, and drops those before it.
func (n *libzmqPeer) waitLine(t testing.TB, beginning string) string {
	t.Helper()
	for line := range n.lines {
		if strings.HasPrefix(line, beginning) {
			return line
		}
	}
	t.Fatalf("the peer ended without printing %q", beginning)
	return ""
}

// printed returns its output so far.
func (n *libzmqPeer) printed() (lines []string) {
	for {
		select {
		case line := <-n.lines:
			lines = append(lines, line)
		default:
			return lines
		}
	}
}

// mixed is a message with frames of every interesting size.
func mixed() Message {
	m := Message{}
	for _, size := range []int{0, 1, 255, 256, 65535, 65536, 3 << 20, 0} {
		m = append(m, bytes.Repeat([]byte{byte(size % 251)}, size))
	}
	return m
}

func TestLibzmqRouter(t *testing.T) {
	t.Parallel()
	eachMechanism(t, func(t *testing.T, m mechanism) {
		peer := startWith(t, m.theirs(dials), "router", "tcp://127.0.0.1:*")
		seen := newWatch()
		dealer := dial(t, Dealer, peer.addr, Options{Curve: m.ours(dials), OnEvent: seen.on})
		for range 3 {
			if err := dealer.Send(t.Context(), mixed()); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			got, err := dealer.Recv(t.Context())
			if err != nil || !slices.EqualFunc(got, mixed(), bytes.Equal) {
				t.Fatalf("the echo differs: %d frames, %v", len(got), err)
			}
		}
		if p := seen.next(t, Connected).Peer; p.Kind != "ROUTER" || p.Minor != 1 {
			t.Errorf("libzmq sent the handshake %+v", p)
		}
	})
}

func TestLibzmqDealer(t *testing.T) {
	t.Parallel()
	eachMechanism(t, func(t *testing.T, m mechanism) {
		router := listen(t, Router, anyPort, Options{Curve: m.ours(listens)})
		startWith(t, m.theirs(listens), "dealer", router.Addr())
		expect(t, router, "python", "hello", "from", "libzmq")
		for range 3 {
			if err := router.Send(t.Context(), append(text("python"), mixed()...)); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			got, err := router.Recv(t.Context())
			if err != nil || !slices.EqualFunc(got[1:], mixed(), bytes.Equal) {
				t.Fatalf("the echo differs: %d frames, %v", len(got), err)
			}
		}
	})
}

// TestLibzmqHeartbeats sends heartbeats every 500 ms; a peer that does not answer is
// disconnected after 2.5 s. A connection survives four seconds without messages only if
// both ends send and answer heartbeats.
func TestLibzmqHeartbeats(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes five seconds of silence")
	}
	on, off := beating(500*time.Millisecond, 3*time.Second), beating(0, 0)
	tests := map[string]struct {
		theirs string
		ours   limits
	}{
		"theirs are answered": {"750", off},
		"ours are answered":   {"0", on},
		"both":                {"750", on},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lost := ""
			for range 3 { // a slow machine can delay a heartbeat for too long
				if lost = stayIdle(t, tt.theirs, tt.ours); lost == "" {
					return
				}
			}
			t.Error(lost)
		})
	}
}

// stayIdle connects both ways, sends no message for a while, and returns what was
// lost.
func stayIdle(t *testing.T, theirs string, ours limits) string {
	t.Helper()
	seen := newWatch()
	router := start(t, "router", "tcp://127.0.0.1:*", theirs)
	dealer := dial(t, Dealer, router.addr, Options{limits: ours, OnEvent: seen.on})
	router.waitLine(t, "up")

	ourRouter := listen(t, Router, anyPort, Options{limits: ours, OnEvent: seen.on})
	theirDealer := start(t, "dealer", ourRouter.Addr(), theirs)
	expect(t, ourRouter, "python", "hello", "from", "libzmq")
	for range 2 {
		seen.next(t, Connected)
	}

	quiet, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if m, err := dealer.Recv(quiet); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("received %q, %v while idle", m, err)
	}
	if lines := slices.Concat(router.printed(), theirDealer.printed()); slices.Contains(lines, "down") {
		return fmt.Sprintf("libzmq lost us: %q", lines)
	}
	select {
	case e := <-seen.events:
		return fmt.Sprintf("%v while idle: %v", e.Type, e.Err)
	default:
	}
	send(t, dealer, "still there")
	expect(t, dealer, "still there")
	send(t, ourRouter, "python", "still there")
	expect(t, ourRouter, "python", "still there")
	return ""
}

func TestLibzmqPublisher(t *testing.T) {
	t.Parallel()
	eachMechanism(t, func(t *testing.T, m mechanism) {
		peer := startWith(t, m.theirs(dials), "publisher", "tcp://127.0.0.1:*")
		sub := dial(t, Sub, peer.addr, Options{Curve: m.ours(dials)})
		sub.Subscribe("job")
		if got, want := peer.waitLine(t, "subscription"), "subscription 01"+hex.EncodeToString([]byte("job")); got != want {
			t.Fatalf("libzmq received %q, want %q", got, want)
		}
		expect(t, sub, "job.1", "for you", string(make([]byte, 70000)))
		sub.Subscribe("log")
		expect(t, sub, "log.1", "for you", string(make([]byte, 70000)))
	})
}

func TestLibzmqSubscriber(t *testing.T) {
	t.Parallel()
	eachMechanism(t, func(t *testing.T, m mechanism) {
		seen := newWatch()
		pub := listen(t, Pub, anyPort, Options{OnEvent: seen.on, Curve: m.ours(listens)})
		peer := startWith(t, m.theirs(listens), "subscriber", pub.Addr())
		for range 2 {
			seen.next(t, Subscribed)
		}
		send(t, pub, "log.1", "not wanted")
		send(t, pub, "job.stop", "wanted")
		if got, want := peer.waitLine(t, "got"), fmt.Sprintf("got %x %x", "job.stop", "wanted"); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
		if e := seen.next(t, Unsubscribed); e.Topic != "job." {
			t.Fatalf("libzmq unsubscribed from %q", e.Topic)
		}
		send(t, pub, "job.2", "no longer wanted")
		send(t, pub, "end")
		if got, want := peer.waitLine(t, "got"), fmt.Sprintf("got %x", "end"); got != want {
			t.Fatalf("%q, want %q", got, want)
		}
	})
}

// own is an endpoint that is free to listen on again.
func own() string { return "tcp://" + netguardtest.ReservedAddress() }

// listenAgain retries while a process that is just starting holds the old socket.
func listenAgain(t *testing.T, kind Kind, addr string) (s *Socket) {
	t.Helper()
	clocktest.Await(t, func() bool {
		var err error
		s, err = Listen(t.Context(), kind, addr, Options{})
		return err == nil
	})
	t.Cleanup(s.Close)
	return s
}

// TestLibzmqRestarts replaces the peer's process by another one, on both sides.
func TestLibzmqRestarts(t *testing.T) {
	t.Parallel()
	first := start(t, "router", own())
	seen := newWatch()
	dealer := dial(t, Dealer, first.addr, Options{OnEvent: seen.on})
	send(t, dealer, "one")
	expect(t, dealer, "one")
	first.stop()
	seen.next(t, Disconnected)
	start(t, "router", first.addr)
	send(t, dealer, "two")
	expect(t, dealer, "two")

	router := listen(t, Router, own(), Options{})
	for range 2 {
		peer := start(t, "dealer", router.Addr())
		expect(t, router, "python", "hello", "from", "libzmq")
		peer.stop()
	}
	router.Close()
	again := listenAgain(t, Router, router.Addr())
	start(t, "dealer", again.Addr())
	expect(t, again, "python", "hello", "from", "libzmq")
}

// TestLibzmqReconnects closes our ROUTER and opens it again while libzmq's DEALER stays.
func TestLibzmqReconnects(t *testing.T) {
	t.Parallel()
	router := listen(t, Router, own(), Options{})
	start(t, "dealer", router.Addr())
	expect(t, router, "python", "hello", "from", "libzmq")
	router.Close()
	again := listenAgain(t, Router, router.Addr())
	if err := again.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	send(t, again, "python", "welcome back")
	expect(t, again, "python", "welcome back")
}
