package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// busy is a tool that answers on request, and records its callers.
type busy struct {
	began chan string
	end   chan struct{}
}

func (b busy) answer(ctx context.Context, call tool.Call) (tool.Result, error) {
	b.began <- string(call.Args)
	select {
	case <-b.end:
		return echo(ctx, call)
	case <-ctx.Done():
		return tool.Result{}, fault.Wrap(fault.Cancelled, context.Cause(ctx), "call %s", call.Ref)
	}
}

func limited(l catalog.Limits) catalog.Options {
	return catalog.Options{Limits: func(string) catalog.Limits { return l }}
}

func TestCallsWaitTheirTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := busy{make(chan string, 10), make(chan struct{})}
		c := open(limited(catalog.Limits{Concurrent: 2, Queue: 3}), newMemory().with("a", "x", "", b.answer))
		_ = listed(t, c)
		done := make(chan error, 10)
		start := func(ctx context.Context, n int) {
			go func() { _, err := c.Call(ctx, call("a", "x", fmt.Sprintf(`{"n":%d}`, n))); done <- err }()
			synctest.Wait()
		}
		impatient, leave := context.WithCancelCause(t.Context())
		start(t.Context(), 1)
		start(t.Context(), 2)
		start(t.Context(), 3)
		start(impatient, 4)
		start(t.Context(), 5)
		if s, _ := c.Stats(t.Context(), "a"); s.InFlight != 5 || s.Waiting != 3 || len(b.began) != 2 {
			t.Fatalf("stats %+v, %d began", s, len(b.began))
		}
		start(t.Context(), 6)
		f := wantFault(t, <-done, fault.Limit)
		if !strings.Contains(f.Error(), "2 calls run and 3 wait") {
			t.Errorf("error = %v", f)
		}
		leave(errors.New("changed my mind"))
		if err := <-done; err == nil || !strings.Contains(err.Error(), "changed my mind") {
			t.Errorf("a cancelled caller got %v", err)
		}
		for range 4 { // one at a time, so that the admitted call begins before the next
			b.end <- struct{}{}
			if err := <-done; err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		var order []string
		for len(b.began) > 0 {
			order = append(order, <-b.began)
		}
		if want := []string{`{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":5}`}; !slices.Equal(order, want) {
			t.Errorf("order = %v, want %v", order, want)
		}
		if s, _ := c.Stats(t.Context(), "a"); s.InFlight != 0 || s.Waiting != 0 {
			t.Errorf("afterwards %+v", s)
		}
	})
}

// A caller that is cancelled at the moment its turn comes passes the turn on.
func TestATurnIsNeverLost(t *testing.T) {
	t.Parallel()
	b := busy{make(chan string, 1000), make(chan struct{}, 1000)}
	c := open(limited(catalog.Limits{Concurrent: 1}), newMemory().with("a", "x", "", b.answer))
	for range 200 {
		ctx, leave := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { _, _ = c.Call(t.Context(), call("a", "x", "")); done <- struct{}{} }()
		go func() { _, _ = c.Call(ctx, call("a", "x", "")); done <- struct{}{} }()
		<-b.began
		go leave()
		b.end <- struct{}{}
		b.end <- struct{}{}
		<-done
		<-done
		for len(b.end) > 0 {
			<-b.end
		}
		for len(b.began) > 0 {
			<-b.began
		}
	}
	b.end <- struct{}{}
	if _, err := c.Call(t.Context(), call("a", "x", "")); err != nil {
		t.Errorf("the limiter is stuck: %v", err)
	}
}

func TestOneNamespaceDoesNotDelayAnother(t *testing.T) {
	t.Parallel()
	b := busy{make(chan string, 1), make(chan struct{})}
	c := open(limited(catalog.Limits{Concurrent: 1}),
		newMemory().with("slow", "x", "", b.answer).with("quick", "x", "", nil).with("", "own", "", nil))
	done := make(chan error)
	go func() { _, err := c.Call(t.Context(), call("slow", "x", "")); done <- err }()
	<-b.began
	for _, space := range []string{"quick", ""} {
		name := map[string]string{"quick": "x", "": "own"}[space]
		if _, err := c.Call(t.Context(), call(space, name, "")); err != nil {
			t.Error(err)
		}
	}
	close(b.end)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestTheBreakerOpensAndCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		healthy := false
		m := newMemory().with("a", "x", "", func(ctx context.Context, call tool.Call) (tool.Result, error) {
			if healthy {
				return echo(ctx, call)
			}
			return fail(fault.Unavailable)(ctx, call)
		})
		c := open(limited(catalog.Limits{Failures: 3, Rest: 4 * time.Second}), m)
		try := func() error { _, err := c.Call(t.Context(), call("a", "x", "")); return err }
		for range 3 {
			wantFault(t, try(), fault.Unavailable)
		}
		time.Sleep(time.Second)
		f := wantFault(t, try(), fault.Unavailable)
		if m.called() != 3 || !strings.Contains(f.Error(), "a failed too often in a row") || !strings.Contains(f.Hint, "tried again in 3s") {
			t.Errorf("after %d calls: %q, hint %q", m.called(), f.Msg, f.Hint)
		}
		if s, _ := c.Stats(t.Context(), "a"); !s.Open || time.Until(s.RetryAt) != 3*time.Second {
			t.Errorf("stats = %+v", s)
		}
		time.Sleep(3*time.Second + 1)
		wantFault(t, try(), fault.Unavailable) // the one that is tried
		wantFault(t, try(), fault.Unavailable)
		if m.called() != 4 {
			t.Errorf("%d calls got through, want 4", m.called())
		}
		time.Sleep(4*time.Second + 1)
		healthy = true
		for range 3 {
			if err := try(); err != nil {
				t.Errorf("after recovery: %v", err)
			}
		}
	})
}

// After the rest one call is tried and the others are refused; if that one is
// cancelled, another is tried.
func TestOneCallIsTriedAfterTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := busy{make(chan string, 10), make(chan struct{})}
		m := newMemory().with("a", "failing", "", fail(fault.Unavailable)).with("a", "slow", "", b.answer).with("a", "x", "", nil)
		c := open(limited(catalog.Limits{Failures: 1, Rest: time.Second}), m)
		_ = listed(t, c)
		_, err := c.Call(t.Context(), call("a", "failing", ""))
		wantFault(t, err, fault.Unavailable)
		time.Sleep(time.Second + 1)
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { _, err := c.Call(ctx, call("a", "slow", "")); left <- err }()
		<-b.began
		_, err = c.Call(t.Context(), call("a", "x", ""))
		if f := wantFault(t, err, fault.Unavailable); !strings.Contains(f.Error(), "is being tried again") {
			t.Errorf("beside the one that is tried: %v", f)
		}
		if s, _ := c.Stats(t.Context(), "a"); s.Open {
			t.Error("it is reported open while a call is tried")
		}
		leave()
		wantFault(t, <-left, fault.Cancelled)
		for range 2 {
			if _, err := c.Call(t.Context(), call("a", "x", "")); err != nil {
				t.Errorf("after the cancelled one: %v", err)
			}
		}
	})
}

// A call that began before the breaker opened does not count once it has closed again.
func TestAnOldFailureDoesNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, end := make(chan struct{}), make(chan struct{})
		m := newMemory().with("a", "failing", "", fail(fault.Unavailable)).with("a", "x", "", nil)
		m.with("a", "slow", "", func(ctx context.Context, call tool.Call) (tool.Result, error) {
			close(began)
			<-end
			return fail(fault.Unavailable)(ctx, call)
		})
		c := open(limited(catalog.Limits{Failures: 2, Rest: time.Second}), m)
		_ = listed(t, c)
		try := func(name string) error { _, err := c.Call(t.Context(), call("a", name, "")); return err }
		old := make(chan error)
		go func() { old <- try("slow") }()
		<-began
		wantFault(t, try("failing"), fault.Unavailable)
		wantFault(t, try("failing"), fault.Unavailable)
		time.Sleep(time.Second + 1)
		if err := try("x"); err != nil {
			t.Fatal(err)
		}
		close(end)
		wantFault(t, <-old, fault.Unavailable)
		wantFault(t, try("failing"), fault.Unavailable)
		if err := try("x"); err != nil {
			t.Errorf("one failure since it closed opened it: %v", err)
		}
	})
}

func TestResetBreakerClosesItAtOnce(t *testing.T) {
	t.Parallel()
	m := newMemory().with("a", "x", "", fail(fault.Unavailable)).with("a", "y", "", nil)
	c := open(limited(catalog.Limits{Failures: 1, Rest: time.Hour}), m)
	_, _ = c.Call(t.Context(), call("a", "x", ""))
	_, err := c.Call(t.Context(), call("a", "y", ""))
	wantFault(t, err, fault.Unavailable)
	c.ResetBreaker("a")
	if _, err := c.Call(t.Context(), call("a", "y", "")); err != nil {
		t.Errorf("after ResetBreaker: %v", err)
	}
	c.ResetBreaker("unknown")
}

func TestOnlyTheConnectionCountsForTheBreaker(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end()
	answers := map[string]answer{
		"tool_error": func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Failure(fault.New(fault.Unavailable, "of its own")), nil
		},
		"upstream_error": fail(fault.Upstream),
		"needs_auth":     fail(fault.NeedsAuth),
		"called_off":     fail(fault.Unavailable),
	}
	for name, a := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			if name == "called_off" {
				ctx = ended
			}
			m := newMemory().with("a", "x", "", a)
			c := open(limited(catalog.Limits{Failures: 2}), m)
			for range 5 {
				_, _ = c.Call(ctx, call("a", "x", ""))
			}
			if m.called() != 5 {
				t.Errorf("%d of 5 calls got through", m.called())
			}
		})
	}
}
