package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
)

// Whoever asks learns why a call ended, whether anybody waited for that or not.
func TestPatienceIsAContext(t *testing.T) {
	t.Parallel()
	type key struct{}
	why := errors.New("why")
	for name, end := range map[string]func(p *patience, leave context.CancelCauseFunc) (cause error){
		"caller":    func(_ *patience, leave context.CancelCauseFunc) error { leave(why); return why },
		"abandoned": func(p *patience, _ context.CancelCauseFunc) error { p.Cancel(why); return why },
		"stopped":   func(p *patience, _ context.CancelCauseFunc) error { p.stop(); return context.Canceled },
		"both":      func(p *patience, leave context.CancelCauseFunc) error { p.Cancel(why); leave(errClosed); return why },
	} {
		for _, waited := range []bool{false, true} {
			ctx, leave := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
			p := newPatience(ctx, &clock.Vigil{}, time.Hour, time.Hour)
			if p.Err() != nil || context.Cause(p) != nil || p.Value(key{}) != "value" {
				t.Errorf("%s: begins with %v, %v, %v", name, p.Err(), context.Cause(p), p.Value(key{}))
			}
			var child context.Context = p
			if waited {
				var cancel func()
				child, cancel = context.WithCancel(p)
				defer cancel()
			}
			cause := end(p, leave)
			<-p.Done()
			for _, ctx := range []context.Context{p, child} {
				if !errors.Is(ctx.Err(), context.Canceled) || !errors.Is(context.Cause(ctx), cause) || ctx.Value(key{}) != "value" {
					t.Errorf("%s, waited %v: ends with %v, %v, %v", name, waited, ctx.Err(), context.Cause(ctx), ctx.Value(key{}))
				}
			}
			p.stop()
			leave(nil)
		}
	}
}

// One timer ends all that is due, and each when it is.
func TestPatienceEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var v clock.Vigil
		done := make(chan struct{})
		wait := func(limit, total, want time.Duration, cause error) *patience {
			p := newPatience(t.Context(), &v, limit, total)
			go func() {
				<-p.Done()
				if took := time.Since(began); took != want || !errors.Is(context.Cause(p), cause) {
					t.Errorf("%v of %v: %v after %v, want after %v", limit, total, context.Cause(p), took, want)
				}
				p.stop()
				done <- struct{}{}
			}()
			return p
		}
		gone := newPatience(t.Context(), &v, time.Minute, time.Hour)
		stirring := wait(3*time.Minute, 4*time.Minute, 4*time.Minute, errMaxTime)
		wait(2*time.Minute, time.Hour, 2*time.Minute, errNoProgress)
		wait(90*time.Second, time.Hour, 90*time.Second, errNoProgress)
		resting := wait(time.Minute, time.Hour, 5*time.Minute, errNoProgress)
		resting.pause()
		time.Sleep(30 * time.Second)
		gone.stop()
		time.Sleep(2 * time.Minute)
		stirring.touch()
		time.Sleep(90 * time.Second)
		resting.resume()
		for range 4 {
			<-done
		}
	})
}

// A connection is not used again once its request's patience ended, however it did.
func TestDirectEndsWithPatience(t *testing.T) {
	t.Parallel()
	there := make(chan struct{}, 1)
	c, connections := directTo(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Header.Get("X-Wait") != "" {
			there <- struct{}{}
			<-r.Context().Done()
		}
	}))
	var v clock.Vigil
	why := errors.New("why")
	for name, end := range map[string]func(p *patience) (cause error){
		"over":      func(p *patience) error { p.Overdue(); return errNoProgress },
		"abandoned": func(p *patience) error { p.Cancel(why); return why },
	} {
		p := newPatience(t.Context(), &v, time.Hour, time.Hour)
		if _, err := c.ask(p, "at once"); err != nil {
			t.Fatal(err)
		}
		before := connections.Load()
		done := make(chan error, 1)
		go func() {
			_, err := c.do(p, c.note("late", Header{"X-Wait", "1"}))
			done <- err
		}()
		<-there
		want := end(p)
		if got := <-done; !errors.Is(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if _, err := c.ask(p, "too late"); err == nil {
			t.Errorf("%s: asked though nobody wants to know", name)
		}
		p.stop()
		if _, err := c.ask(t.Context(), "again"); err != nil || connections.Load() == before {
			t.Errorf("%s: asked again over %d connections, %v", name, connections.Load(), err)
		}
	}
}
