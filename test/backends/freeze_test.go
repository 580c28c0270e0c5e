package backends_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/luanette/luanette/bench/proc"
	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/zmq/hootproto"
	"github.com/luanette/luanette/internal/zmq/zmtp"
)

// tap stands between hubs and a backend, as a proxy does, and counts how often the
// heartbeat with each id passes in each direction.
type tap struct {
	*testing.T
	front, back *zmtp.Socket

	mu    sync.Mutex
	count map[[2]string]int // by direction and id
}

func newTap(t *testing.T, backend string) *tap {
	t.Helper()
	p := &tap{T: t, count: map[[2]string]int{}}
	var err error
	if p.front, err = zmtp.Listen(t.Context(), zmtp.Router, "tcp://127.0.0.1:0", zmtp.Options{}); err != nil {
		t.Fatal(err)
	}
	if p.back, err = zmtp.Dial(t.Context(), zmtp.Dealer, backend, zmtp.Options{}); err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() { p.relay("to the backend", p.front, p.back) })
	work.Go(func() { p.relay("to a hub", p.back, p.front) })
	t.Cleanup(func() { p.front.Close(); p.back.Close(); work.Wait() })
	return p
}

func (p *tap) relay(direction string, from, to *zmtp.Socket) {
	for m, err := from.Recv(context.Background()); err == nil; m, err = from.Recv(context.Background()) {
		if f, err := hootproto.Parse(m); err == nil && (f.Command == hootproto.Heartbeat || f.Command == hootproto.HeartbeatReply) {
			p.mu.Lock()
			p.count[[2]string{direction, f.ID.String()}]++
			p.mu.Unlock()
		}
		_ = to.Send(context.Background(), m) // fails when it is closed
	}
}

// check checks that no heartbeat passed twice in one direction, as it does when an
// answer is taken for a question.
func (p *tap) check() {
	p.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for of, times := range p.count {
		if times > 1 {
			p.Errorf("the heartbeat %s passed %d times %s", of[1], times, of[0])
		}
	}
	p.Logf("%d heartbeats and answers", len(p.count))
}

// freezing is how often and how long a backend is stopped: briefly and twice, or as
// `make freeze` asks, with the settings of the server.
type freezing struct {
	rounds   int
	from, to time.Duration
	options  upstream.Options
}

func newFreezing(t *testing.T) freezing {
	text := os.Getenv("LUANETTE_TEST_FREEZES")
	if text == "" {
		return freezing{2, 300 * time.Millisecond, 600 * time.Millisecond,
			upstream.Options{HealthInterval: 30 * time.Millisecond, HealthTimeout: 50 * time.Millisecond}}
	}
	rounds, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return freezing{rounds, 3 * time.Second, 20 * time.Second, upstream.Options{}}
}

// newHub returns a hub with the backend behind the tap.
func newHub(t *testing.T, options upstream.Options, addr string) *upstream.Manager {
	t.Helper()
	options.Events = event.New(event.BusOptions{})
	m := upstream.New(options)
	t.Cleanup(m.Close)
	if err := m.Add(upstream.Spec{Name: "frozen", Settings: upstream.Settings{URL: "zmq+" + addr, Wait: duration.Duration(time.Minute), Timeout: duration.Duration(time.Minute)}}); err != nil {
		t.Fatal(err)
	}
	return m
}

// A backend is stopped and resumed while two hubs call slow tools of it. Afterwards the
// hubs and the backend answer each heartbeat once, and then are idle.
func TestFrozen(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]struct {
		env     []string
		command []string
		call    tool.Call
	}{
		"go":     {[]string{"LUANETTE_TEST_NUMBERS=" + t.TempDir(), "LUANETTE_TEST_LISTEN=tcp://127.0.0.1:0"}, []string{self}, tool.Call{Ref: tool.Ref{Name: "slow"}, Args: json.RawMessage(`{"n":1}`)}},
		"python": {nil, []string{python, program, "tcp://127.0.0.1:*", "tcp://127.0.0.1:*"}, tool.Call{Ref: tool.Ref{Name: "wait"}, Args: json.RawMessage(`{"seconds":0.2}`)}},
		"hoot01": {nil, []string{python, old, "tcp://127.0.0.1:*", "tcp://127.0.0.1:*"}, tool.Call{Ref: tool.Ref{Name: "wait"}, Args: json.RawMessage(`{"seconds":0.2}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			if os.Getenv("LUANETTE_TEST_FREEZES") == "" { // otherwise one would disturb the figures of another
				t.Parallel()
			}
			if name != "go" {
				needPython(t)
			}
			addr, pid := startBackend(t, b.env, b.command[0], b.command[1:]...)
			b.call.Ref.Space = "frozen"
			freeze(t, addr, pid, b.call)
		})
	}
}

// freeze stops and resumes a backend.
func freeze(t *testing.T, addr string, pid int, call tool.Call) {
	how := newFreezing(t)
	p := newTap(t, addr)
	hubs := []*upstream.Manager{newHub(t, how.options, p.front.Addr()), newHub(t, how.options, p.front.Addr())}
	var calling sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for _, m := range hubs {
		calling.Go(func() {
			for ctx.Err() == nil {
				_, _ = m.Call(ctx, call) // it may fail while the backend is stopped
			}
		})
	}
	for range how.rounds {
		signalTo(t, pid, syscall.SIGSTOP)
		time.Sleep(how.from + rand.N(how.to-how.from)) // any length will do
		signalTo(t, pid, syscall.SIGCONT)
		for _, m := range hubs {
			awaitAnswer(t, m, call)
		}
	}
	stop()
	calling.Wait()
	if os.Getenv("LUANETTE_TEST_FREEZES") != "" {
		idle(t, pid)
	}
	p.check()
}

func signalTo(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
}

// awaitAnswer calls until a call succeeds.
func awaitAnswer(t *testing.T, m *upstream.Manager, call tool.Call) {
	t.Helper()
	for range 1000 {
		if _, err := m.Call(t.Context(), call); err == nil {
			return
		}
	}
	t.Fatal("the backend did not come back")
}

// idle checks the CPU time of the hubs and of the backend when nothing is called. Only
// `make freeze` does: elapsed time is no matter for other tests.
func idle(t *testing.T, pid int) {
	const pause = 20 * time.Second
	time.Sleep(2 * time.Second)
	before, err := proc.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	ours := proc.Self()
	time.Sleep(pause)
	after, err := proc.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	for name, used := range map[string]time.Duration{"hubs": proc.Self() - ours, "backend": after.Sub(before).CPU} {
		share := 100 * used.Seconds() / pause.Seconds()
		t.Logf("%s: %.2f %% of a core when idle", name, share)
		if share >= 1 {
			t.Errorf("%s use %.2f %% of a core when idle, 1 %% is too much", name, share)
		}
	}
}
