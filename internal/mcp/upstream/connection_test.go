package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// testManager is a manager with a fake server, in virtual time.
type testManager struct {
	*upstream.Manager
	fake *fake
	sub  *event.Subscription
}

func newTestManager(t *testing.T, change func(*upstream.Options)) *testManager {
	f := newFake()
	options := f.options()
	bus := event.New(event.BusOptions{})
	options.Events = bus
	if change != nil {
		change(&options)
	}
	s := &testManager{upstream.New(options), f, bus.Subscribe(event.Options{Buffer: 10_000})}
	t.Cleanup(func() { s.Close(); s.sub.Close() })
	return s
}

func (s *testManager) add(t *testing.T, spec upstream.Spec) {
	t.Helper()
	spec.Name = "test"
	if spec.URL == "" {
		spec.URL = "fake://here"
	}
	if err := s.Add(spec); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func (s *testManager) state(t *testing.T) upstream.Status {
	t.Helper()
	synctest.Wait()
	status, ok := s.Status("test")
	if !ok {
		t.Fatal("no status")
	}
	return status
}

// eventTypes returns the types of all events so far.
func (s *testManager) eventTypes(t *testing.T) (kinds []string) {
	t.Helper()
	synctest.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	for {
		e, err := s.sub.Next(ctx)
		if err != nil {
			return kinds
		}
		kinds = append(kinds, e.Type)
	}
}

func (s *testManager) call(name string) error {
	_, err := s.Call(context.Background(), tool.Call{Ref: ref(name)})
	return err
}

func TestAddingNeverWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestManager(t, nil)
		s.fake.onDial(func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() })
		began := time.Now()
		s.add(t, upstream.Spec{})
		if took := time.Since(began); took != 0 {
			t.Errorf("adding took %v", took)
		}
		if st := s.state(t); st.State != upstream.StateConnecting {
			t.Errorf("state = %s", st.State)
		}
		s.Remove("test")
		s.Close()
		if took := time.Since(began); took != 0 {
			t.Errorf("removing took %v", took)
		}
	})
}

func TestAttemptsContinueWithBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestManager(t, nil)
		var at []time.Duration
		began := time.Now()
		s.fake.onDial(func(context.Context, int) error { at = append(at, time.Since(began)); return errors.New("no route") })
		s.add(t, upstream.Spec{})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		ms := time.Millisecond
		want := []time.Duration{0, 100 * ms, 300 * ms, 700 * ms, 1500 * ms, 3100 * ms, 6100 * ms, 9100 * ms}
		if !slices.Equal(at, want) {
			t.Errorf("attempts at %v, want %v", at, want)
		}
		st := s.state(t)
		if st.State != upstream.StateReconnecting || st.Attempt != 8 || !strings.Contains(st.LastError, "no route") || time.Until(st.NextTry) != 2100*ms {
			t.Errorf("status = %+v", st)
		}
		s.fake.onDial(nil)
		time.Sleep(3 * time.Second)
		if st := s.state(t); st.State != upstream.StateConnected || st.Attempt != 0 || st.LastError != "" {
			t.Errorf("status = %+v", st)
		}
	})
}

func TestCallWakesTheReconnectAndWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestManager(t, nil)
		s.add(t, upstream.Spec{})
		s.fake.drop(errors.New("power cut"))
		time.Sleep(20 * time.Second)
		before := s.fake.attempts()
		began := time.Now()
		go func() {
			time.Sleep(500 * time.Millisecond)
			s.fake.drop(nil)
		}()
		// The call triggers an attempt at once, which fails, and then others at short
		// intervals. Without the call the next one would be after three seconds.
		if err := s.call("write"); err != nil {
			t.Errorf("call: %v", err)
		}
		if n := s.fake.attempts() - before; n < 2 || n > 6 || time.Since(began) > time.Second {
			t.Errorf("%d attempts in %v", n, time.Since(began))
		}
	})
}

func TestCallToDisconnectedServerFailsWithReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestManager(t, nil)
		s.add(t, upstream.Spec{})
		s.fake.drop(errors.New("power cut"))
		began := time.Now()
		err := s.call("read")
		if took := time.Since(began); took != upstream.DefaultWait {
			t.Errorf("waited %v", took)
		}
		if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "power cut") || !strings.Contains(fault.HintOf(err), "attempt is") {
			t.Errorf("error = %v, hint %q", err, fault.HintOf(err))
		}
		infos, _ := s.Tools(t.Context())
		if len(infos) != 2 || !infos[0].Stale {
			t.Errorf("tools while disconnected: %+v", infos)
		}
	})
}

func TestOnlyRepeatableCallsAreRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestManager(t, nil)
		var reads, writes atomic.Int64
		s.fake.handle = func(ctx context.Context, m wire.Message) (json.RawMessage, error) {
			count := &reads
			if name, _ := rawjson.GetText(m.Params, "name"); name == "write" {
				count = &writes
			}
			if count.Add(1) == 1 {
				s.fake.drop(nil)
				<-ctx.Done()
			}
			return json.RawMessage(`{"content":[]}`), nil
		}
		s.add(t, upstream.Spec{})
		if err := s.call("read"); err != nil || reads.Load() != 2 {
			t.Errorf("read: %v after %d tries", err, reads.Load())
		}
		err := s.call("write")
		if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "outcome is unknown") || writes.Load() != 1 {
			t.Errorf("write: %v after %d tries", err, writes.Load())
		}
	})
}

// A call that runs while its upstream is removed, or gets other settings, says so instead of
// blaming the connection.
func TestCallsOfARemovedUpstreamSaySo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestManager(t, nil)
		s.fake.handle = func(ctx context.Context, _ wire.Message) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		for _, c := range []struct {
			tool string
			end  func()
			want string
		}{
			{"write", func() { s.Remove("test") }, "test.write: the upstream was removed during the call, its outcome is unknown"},
			{"read", func() { s.Remove("test") }, "call test: the upstream was removed during the call, which had no effect"},
			{"write", func() { s.add(t, upstream.Spec{Settings: upstream.Settings{URL: "fake://there"}}) }, "test.write: the upstream was restarted or its settings were changed during the call, its outcome is unknown"},
			{"write", s.Close, "test.write: the server was shut down during the call, its outcome is unknown"},
		} {
			s.add(t, upstream.Spec{})
			failed := make(chan error, 1)
			go func() { failed <- s.call(c.tool) }()
			synctest.Wait()
			c.end()
			if err := <-failed; fault.CodeOf(err) != fault.Unavailable || err.Error() != c.want {
				t.Errorf("%s: %v", c.tool, err)
			}
		}
	})
}

func TestSilentServerIsHealthChecked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestManager(t, nil)
		var hung atomic.Bool
		s.fake.handle = func(ctx context.Context, m wire.Message) (json.RawMessage, error) {
			if hung.Load() {
				<-ctx.Done()
			}
			return json.RawMessage(`{}`), nil
		}
		s.add(t, upstream.Spec{})
		time.Sleep(time.Minute)
		if st := s.state(t); st.State != upstream.StateConnected || s.fake.attempts() != 1 {
			t.Errorf("healthy server: %+v after %d attempts", st, s.fake.attempts())
		}
		hung.Store(true)
		time.Sleep(21 * time.Second)
		synctest.Wait()
		if s.fake.attempts() != 2 {
			t.Errorf("hung server was dialled %d times", s.fake.attempts())
		}
		if kinds := s.eventTypes(t); !slices.Contains(kinds, "upstream.reconnecting") || !slices.Contains(kinds, "upstream.lost") {
			t.Errorf("events = %v", kinds)
		}
	})
}

func TestLazyServerSleepsUntilItIsCalled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		cached := func(o *upstream.Options) { o.CacheDir = dir }
		first := newTestManager(t, cached)
		first.add(t, upstream.Spec{})
		first.Close()

		s := newTestManager(t, cached)
		s.fake.onDial(func(context.Context, int) error { time.Sleep(5 * time.Second); return nil })
		s.add(t, upstream.Spec{Settings: upstream.Settings{Start: upstream.Lazy, Idle: duration.Duration(10 * time.Minute)}})
		infos, _ := s.Tools(t.Context())
		if st := s.state(t); st.State != upstream.StateAsleep || s.fake.attempts() != 0 || len(infos) != 2 || !infos[0].Stale {
			t.Errorf("status %+v, %d attempts, tools %v", st, s.fake.attempts(), infos)
		}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if err := s.call("write"); err != nil {
					t.Errorf("call: %v", err)
				}
			})
		}
		wg.Wait()
		if s.fake.attempts() != 1 {
			t.Errorf("10 calls started it %d times", s.fake.attempts())
		}
		time.Sleep(9 * time.Minute)
		if err := s.call("write"); err != nil {
			t.Errorf("call: %v", err)
		}
		time.Sleep(9 * time.Minute)
		if st := s.state(t); st.State != upstream.StateConnected {
			t.Errorf("it fell asleep too early: %+v", st)
		}
		time.Sleep(90 * time.Second)
		if st := s.state(t); st.State != upstream.StateAsleep {
			t.Errorf("it stays awake: %+v", st)
		}
		if err := s.call("write"); err != nil || s.fake.attempts() != 2 {
			t.Errorf("second waking: %v, %d attempts", err, s.fake.attempts())
		}
	})
}

func TestUnknownLazyServerIsStartedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestManager(t, nil)
		s.add(t, upstream.Spec{Settings: upstream.Settings{Start: upstream.Lazy, Idle: duration.Duration(10 * time.Second)}}) // sooner than any health check
		if infos, _ := s.Tools(t.Context()); len(infos) != 2 || s.fake.attempts() != 1 {
			t.Errorf("tools %v after %d attempts", infos, s.fake.attempts())
		}
		time.Sleep(9 * time.Second)
		if st := s.state(t); st.State != upstream.StateConnected {
			t.Errorf("status before its time = %+v", st)
		}
		time.Sleep(2 * time.Second)
		if st := s.state(t); st.State != upstream.StateAsleep || st.Tools != 2 {
			t.Errorf("status = %+v", st)
		}
	})
}

func TestLazyServerThatCannotStartGoesToSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestManager(t, nil)
		s.add(t, upstream.Spec{Settings: upstream.Settings{Start: upstream.Lazy, Idle: duration.Duration(time.Minute)}})
		time.Sleep(2 * time.Minute)
		s.fake.drop(errors.New("out of order"))
		began := time.Now()
		if err := s.call("read"); fault.CodeOf(err) != fault.Unavailable || time.Since(began) != upstream.DefaultWait {
			t.Errorf("call: %v after %v", err, time.Since(began))
		}
		time.Sleep(time.Minute)
		before := s.fake.attempts()
		time.Sleep(time.Hour)
		if st := s.state(t); st.State != upstream.StateAsleep || s.fake.attempts() != before || !strings.Contains(st.LastError, "out of order") {
			t.Errorf("status %+v, %d further attempts", st, s.fake.attempts()-before)
		}
	})
}

func TestCallWaitingForTheOldServerGoesToTheNew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestManager(t, nil)
		s.fake.drop(errors.New("out of order"))
		s.add(t, upstream.Spec{Settings: upstream.Settings{URL: "fake://old"}})
		done := make(chan error)
		go func() { done <- s.call("write") }()
		time.Sleep(time.Second)
		s.fake.drop(nil)
		s.add(t, upstream.Spec{Settings: upstream.Settings{URL: "fake://new"}})
		if err := <-done; err != nil {
			t.Errorf("call: %v", err)
		}
	})
}

func TestNewGenerationIsNotOverwrittenByTheOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestManager(t, nil)
		s.fake.onDial(func(_ context.Context, attempt int) error {
			if attempt == 1 {
				time.Sleep(10 * time.Second) // ignores its context: it ends late, and succeeds
			}
			return nil
		})
		s.add(t, upstream.Spec{Settings: upstream.Settings{URL: "fake://old"}})
		old := s.state(t).Generation
		s.fake.list(`{"tools":[{"name":"new","inputSchema":{"type":"object"}}]}`)
		s.add(t, upstream.Spec{Settings: upstream.Settings{URL: "fake://new"}})
		time.Sleep(time.Minute)
		st := s.state(t)
		if st.Generation <= old || st.Target != "fake://new" || st.State != upstream.StateConnected || st.Tools != 1 {
			t.Errorf("status = %+v", st)
		}
		if kinds := s.eventTypes(t); slices.Contains(kinds, "upstream.removed") {
			t.Errorf("events = %v", kinds)
		}
	})
}

func TestSameSpecAgainDoesNothingAndSmallChangesDoNotReconnect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestManager(t, nil)
		s.add(t, upstream.Spec{})
		s.add(t, upstream.Spec{})
		s.add(t, upstream.Spec{Settings: upstream.Settings{Timeout: duration.Duration(time.Second), DisabledTools: []string{"write"}}})
		if s.fake.attempts() != 1 {
			t.Errorf("%d attempts", s.fake.attempts())
		}
		if infos, _ := s.Tools(t.Context()); len(infos) != 1 || infos[0].Name != "read" {
			t.Errorf("tools = %v", infos)
		}
		if err := s.call("write"); fault.CodeOf(err) != fault.Denied {
			t.Errorf("disabled tool: %v", err)
		}
		if kinds := s.eventTypes(t); kinds[len(kinds)-1] != "upstream.tools_refreshed" {
			t.Errorf("events = %v", kinds)
		}
		s.add(t, upstream.Spec{Settings: upstream.Settings{ReadOnly: true}})
		if err := s.call("write"); fault.CodeOf(err) != fault.Denied {
			t.Errorf("writing tool of a read-only upstream: %v", err)
		}
		s.add(t, upstream.Spec{Settings: upstream.Settings{Headers: map[string]string{"X-Key": "1"}}})
		if s.fake.attempts() != 2 {
			t.Errorf("%d attempts after other credentials", s.fake.attempts())
		}
		if err := s.Set(nil); err != nil || len(s.List()) != 0 {
			t.Errorf("after removing all: %v, %v", s.List(), err)
		}
		if kinds := s.eventTypes(t); kinds[len(kinds)-1] != "upstream.removed" {
			t.Errorf("events = %v", kinds)
		}
	})
}

func TestListChangedIsDebounced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestManager(t, nil)
		s.add(t, upstream.Spec{})
		s.eventTypes(t)
		for range 10 {
			s.fake.notify(wire.NoteToolsChanged, nil)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		if kinds := s.eventTypes(t); len(kinds) != 0 {
			t.Errorf("a list that did not change made %v", kinds)
		}
		s.fake.list(`{"tools":[]}`)
		for range 10 {
			s.fake.notify(wire.NoteToolsChanged, nil)
		}
		time.Sleep(99 * time.Millisecond)
		if kinds := s.eventTypes(t); len(kinds) != 0 {
			t.Errorf("too early: %v", kinds)
		}
		time.Sleep(time.Millisecond)
		if kinds := s.eventTypes(t); !slices.Equal(kinds, []string{"upstream.tools_refreshed"}) {
			t.Errorf("events = %v", kinds)
		}
	})
}

func TestRefreshFetchesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestManager(t, nil)
		s.add(t, upstream.Spec{})
		s.fake.list(`{"tools":[]}`)
		if err := s.Refresh(t.Context(), "test"); err != nil {
			t.Error(err)
		}
		if infos, _ := s.Tools(t.Context()); len(infos) != 0 {
			t.Errorf("tools = %v", infos)
		}
		if err := s.Refresh(t.Context(), "unknown"); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("refresh of an unknown upstream: %v", err)
		}
	})
}
