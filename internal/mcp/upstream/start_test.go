package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstream/upstreamtest"
)

// asProcess lets the fake server stand for a child process.
func asProcess(s *testManager) func(*upstream.Options) {
	return func(o *upstream.Options) {
		o.Dialers[upstream.Stdio] = func(ctx context.Context, spec upstream.Spec, hooks upstream.Hooks) (upstream.Transport, error) {
			return s.fake.dial(ctx, spec, hooks)
		}
	}
}

// newProcessManager is a manager whose commands are the fake server.
func newProcessManager(t *testing.T, change func(*upstream.Options)) *testManager {
	f := newFake()
	options := f.options()
	bus := event.New(event.BusOptions{})
	options.Events = bus
	s := &testManager{fake: f, sub: bus.Subscribe(event.Options{Buffer: 10_000})}
	asProcess(s)(&options)
	if change != nil {
		change(&options)
	}
	s.Manager = upstream.New(options)
	t.Cleanup(func() { s.Close(); s.sub.Close() })
	return s
}

func TestSlowProcessConnectsOnItsFirstStart(t *testing.T) {
	t.Parallel()
	for _, needs := range []time.Duration{25 * time.Second, 60 * time.Second, 100 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := newProcessManager(t, nil)
			s.fake.onDial(func(ctx context.Context, _ int) error { return sleep(ctx, needs) })
			if err := s.Add(upstream.Spec{Name: "test", Settings: upstream.Settings{Command: "slow"}}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(14 * time.Second)
			if st := s.state(t); st.State != upstream.StateStarting || st.Hint != "" || time.Since(st.Since) != 14*time.Second {
				t.Errorf("status = %+v", st)
			}
			time.Sleep(time.Second)
			if st := s.state(t); st.State != upstream.StateStarting || !strings.Contains(st.Hint, "start_timeout") {
				t.Errorf("status = %+v", st)
			}
			var reports []tool.Progress
			caller := &tool.Caller{Progress: func(p tool.Progress) { reports = append(reports, p) }}
			if _, err := s.Call(t.Context(), tool.Call{Ref: ref("write"), Caller: caller}); err != nil {
				t.Errorf("call: %v", err)
			}
			if st := s.state(t); st.State != upstream.StateConnected || s.fake.attempts() != 1 || time.Since(st.Since) != 0 {
				t.Errorf("status = %+v after %d attempts", st, s.fake.attempts())
			}
			if len(reports) < 4 || !strings.Contains(reports[0].Message, "test has been starting for 17 s") || reports[1].Progress <= reports[0].Progress || reports[len(reports)-1].Progress > 0.001 {
				t.Errorf("progress = %+v", reports)
			}
		})
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func TestStartThatTakesTooLong(t *testing.T) {
	t.Parallel()
	for given, want := range map[time.Duration]time.Duration{0: 2 * time.Minute, 10 * time.Second: 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := newProcessManager(t, nil)
			s.fake.onDial(func(ctx context.Context, _ int) error { return sleep(ctx, time.Hour) })
			if err := s.Add(upstream.Spec{Name: "test", Settings: upstream.Settings{Command: "hangs", StartTimeout: duration.Duration(given)}}); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			err := s.call("write")
			if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "no answer within "+want.String()) || time.Since(began) != want {
				t.Errorf("call: %v after %v", err, time.Since(began))
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err = s.Call(ctx, tool.Call{Ref: ref("write")})
			if fault.CodeOf(err) != fault.Timeout || !strings.Contains(err.Error(), "test has been starting for 4 s") {
				t.Errorf("call with a timeout of its own: %v", err)
			}
		})
	}
}

// Calls come first: of many processes that wait for their turn, the one that a call
// needs starts next.
func TestProcessThatACallNeedsStartsFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newProcessManager(t, func(o *upstream.Options) { o.ParallelStarts = 2 })
		running, most := 0, 0
		var mu sync.Mutex
		s.fake.onDial(func(ctx context.Context, _ int) error {
			mu.Lock()
			running++
			most = max(most, running)
			mu.Unlock()
			defer func() { mu.Lock(); defer mu.Unlock(); running-- }()
			return sleep(ctx, 10*time.Second)
		})
		for i := range 10 {
			if err := s.Add(upstream.Spec{Name: fmt.Sprint("s", i), Settings: upstream.Settings{Command: "slow"}}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		waiting := ""
		for _, st := range s.List() {
			if st.Queued {
				waiting = st.Name
			}
		}
		began := time.Now()
		if _, err := s.Call(t.Context(), tool.Call{Ref: tool.Ref{Space: waiting, Name: "write"}}); err != nil {
			t.Errorf("call: %v", err)
		}
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("%s came up after %v", waiting, took)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		for _, st := range s.List() {
			if st.State != upstream.StateConnected {
				t.Errorf("%s is %s", st.Name, st.State)
			}
		}
		if most != 2 {
			t.Errorf("%d started at once", most)
		}
	})
}

// Processes that hang do not hold up the others for ever.
func TestHungProcessesGiveUpTheirTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newProcessManager(t, func(o *upstream.Options) { o.ParallelStarts = 1 })
		s.fake.onDial(func(ctx context.Context, attempt int) error {
			if attempt == 1 {
				return sleep(ctx, time.Hour)
			}
			return nil
		})
		for _, name := range []string{"hung", "quick"} {
			if err := s.Add(upstream.Spec{Name: name, Settings: upstream.Settings{Command: name}}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if st, _ := s.Status("quick"); st.State != upstream.StateConnected {
			t.Errorf("status = %+v", st)
		}
	})
}

func TestRealProcessesStartOneAfterAnother(t *testing.T) {
	t.Parallel()
	bus := event.New(event.BusOptions{})
	options := options(t)
	options.Events, options.ParallelStarts = bus, 1
	m := upstream.New(options)
	t.Cleanup(m.Close)
	lock := filepath.Join(t.TempDir(), "lock")
	names := []string{"a", "b", "c", "d", "e", "f"}
	for _, name := range names {
		spec := stdioSpec(t, "starts alone")
		spec.Name, spec.Env["LOCK"] = name, lock
		if err := m.Add(spec); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		m.Await(t.Context(), bus, name, func(s upstream.Status) bool { return s.State == upstream.StateConnected })
		if st, _ := m.Status(name); st.Attempt != 0 || st.State != upstream.StateConnected {
			t.Errorf("status = %+v", st)
		}
	}
}

// A process that ends five times with the same words is retried rarely, until
// somebody asks for it.
func TestProcessThatEndsAtOnceFails(t *testing.T) {
	t.Parallel()
	srv := stdioServer(t, stdioSpec(t, "dies at once"))
	srv.Options.FailedAfter = 1
	h := upstreamtest.Open(t, srv)
	for attempt := 1; attempt < 5; attempt++ {
		if e := h.Await(t, "upstream.reconnecting").Data.(upstream.Reconnecting); e.Attempt != attempt {
			t.Errorf("event = %+v", e)
		}
	}
	if e := h.Await(t, "upstream.failed").Data.(upstream.Failed); e.Attempt != 5 || !strings.Contains(e.Error, "no licence found") || e.DelayMS != 300_000 {
		t.Errorf("event = %+v", e)
	}
	_, err := h.Manager.Call(t.Context(), tool.Call{Ref: ref("echo")})
	if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "5 times in a row") || !strings.Contains(err.Error(), "no licence found") {
		t.Errorf("call: %v", err)
	}
	started := func() int { return len(pids{srv.Spec.Env["PID_DIR"]}.all(t)) }
	if n := started(); n != 5 {
		t.Errorf("%d processes were started", n)
	}
	if err := h.Manager.Refresh(t.Context(), "test"); fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "6 times") {
		t.Errorf("refresh: %v", err)
	}
	if n := started(); n != 6 {
		t.Errorf("%d processes were started", n)
	}
	spec := srv.Spec
	spec.Env = map[string]string{roleVariable: "plain"} // its owner repairs it
	if err := h.Manager.Add(spec); err != nil {
		t.Fatal(err)
	}
	h.Await(t, "upstream.connected")
}

func TestFailedProcessIsRetriedEveryFiveMinutesWithFewEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newProcessManager(t, nil)
		s.fake.onDial(func(_ context.Context, n int) error { return fmt.Errorf("port %d is taken", n) })
		attempts := func() int { synctest.Wait(); return s.fake.attempts() }
		if err := s.Add(upstream.Spec{Name: "test", Settings: upstream.Settings{Command: "broken"}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if st := s.state(t); st.State != upstream.StateFailed || attempts() != 7 || st.Attempt != 7 || !strings.Contains(st.Hint, "Retry on the page") {
			t.Errorf("status = %+v after %d attempts", st, attempts())
		}
		time.Sleep(11 * time.Minute)
		if st := s.state(t); st.State != upstream.StateFailed || attempts() != 9 {
			t.Errorf("status = %+v after %d attempts", st, attempts())
		}
		if err := s.call("write"); fault.CodeOf(err) != fault.Unavailable || attempts() != 10 {
			t.Errorf("call: %v after %d attempts", err, attempts()) // it was some minutes ago: the call makes an attempt
		}
		if err := s.call("write"); fault.CodeOf(err) != fault.Unavailable || attempts() != 10 {
			t.Errorf("call: %v after %d attempts", err, attempts())
		}
		if err := s.Add(upstream.Spec{Name: "test", Settings: upstream.Settings{Command: "broken", Timeout: duration.Duration(time.Second)}}); err != nil {
			t.Fatal(err)
		}
		if attempts() != 11 {
			t.Errorf("%d attempts after a change of its settings", attempts())
		}
		time.Sleep(24 * time.Hour)
		if attempts() < 280 {
			t.Errorf("%d attempts", attempts())
		}
		kinds := s.eventTypes(t)
		if len(kinds) > 16 {
			t.Errorf("%d events: %v", len(kinds), kinds)
		}
		s.fake.onDial(nil)
		s.Retry("test")
		if st := s.state(t); st.State != upstream.StateConnected {
			t.Errorf("status = %+v", st)
		}
	})
}

func TestServerThatIsDownForADayMakesFewEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestManager(t, nil)
		s.fake.onDial(func(context.Context, int) error { return errors.New("no route") })
		s.add(t, upstream.Spec{})
		time.Sleep(24 * time.Hour)
		if kinds := s.eventTypes(t); len(kinds) > 20 || s.fake.attempts() < 28_000 {
			t.Errorf("%d events for %d attempts", len(kinds), s.fake.attempts())
		}
	})
}

// TestRestart checks that a connected server is connected anew, and that its tools stay
// known meanwhile.
func TestRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newProcessManager(t, nil)
		if err := s.Add(upstream.Spec{Name: "test", Settings: upstream.Settings{Command: "quick"}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		before, started := s.state(t), s.fake.attempts()
		if err := s.Restart("test"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if st := s.state(t); st.State != upstream.StateConnected || st.Tools != before.Tools || s.fake.attempts() <= started ||
			st.Stats.Connects != 2 || !st.Stats.Connected.Equal(before.Since) {
			t.Errorf("status %+v after %d attempts, before %+v after %d", st, s.fake.attempts(), before, started)
		}
		if err := s.Restart("other"); err == nil {
			t.Error("a server that is not there was restarted")
		}
	})
}
