package upstream

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestCallContextEndsWithItsCause(t *testing.T) {
	t.Parallel()
	type key struct{}
	why := errors.New("why")
	for name, end := range map[string]func(timeout *callTimeout, leave context.CancelCauseFunc) (cause error){
		"caller":    func(_ *callTimeout, leave context.CancelCauseFunc) error { leave(why); return why },
		"transport": func(timeout *callTimeout, _ context.CancelCauseFunc) error { timeout.cancel(why); return why },
		"failed": func(timeout *callTimeout, _ context.CancelCauseFunc) error {
			timeout.stop(true)
			return context.Canceled
		},
	} {
		outlives := name != "caller"
		parent, leave := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
		ctx, timeout := startCallTimeout(parent, time.Hour, time.Hour, outlives)
		if ctx.Err() != nil || ctx.Value(key{}) != "value" {
			t.Errorf("%s: begins with %v, %v", name, ctx.Err(), ctx.Value(key{}))
		}
		want := end(timeout, leave)
		<-ctx.Done()
		if got := context.Cause(ctx); !errors.Is(got, want) {
			t.Errorf("%s: ended by %v, want %v", name, got, want)
		}
		timeout.stop(true)
		leave(nil)
	}
}

// The HTTP transport still reads the end of a response after a call has succeeded.
func TestCallContextOutlivesASuccessfulCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		parent, leave := context.WithCancel(t.Context())
		ctx, timeout := startCallTimeout(parent, time.Minute, time.Hour, true)
		timeout.stop(false)
		leave()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Errorf("ended by %v", context.Cause(ctx))
		}
	})
}

func TestCallTimeoutExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		for name, c := range map[string]struct {
			limit, total time.Duration
			during       func(timeout *callTimeout)
			want         time.Duration
			cause        error
		}{
			"no progress":       {2 * time.Minute, time.Hour, func(*callTimeout) {}, 2 * time.Minute, errNoProgress},
			"limit is the most": {time.Hour, time.Hour, func(*callTimeout) {}, time.Hour, errNoProgress},
			"progress": {3 * time.Minute, 4 * time.Minute, func(timeout *callTimeout) {
				time.Sleep(150 * time.Second)
				timeout.extend()
			}, 4 * time.Minute, errMaxTime},
			"caller was asked": {time.Minute, time.Hour, func(timeout *callTimeout) {
				timeout.pause()
				time.Sleep(4 * time.Minute)
				timeout.extend()
			}, 5 * time.Minute, errNoProgress},
			"caller never replied": {time.Minute, 10 * time.Minute, func(timeout *callTimeout) { timeout.pause() }, 10 * time.Minute, errMaxTime},
		} {
			ctx, timeout := startCallTimeout(t.Context(), c.limit, c.total, false)
			go c.during(timeout)
			go func() {
				<-ctx.Done()
				if took := time.Since(began); took != c.want || !errors.Is(context.Cause(ctx), c.cause) {
					t.Errorf("%s: %v after %v, want %v after %v", name, context.Cause(ctx), took, c.cause, c.want)
				}
				timeout.stop(true)
			}()
		}
		time.Sleep(2 * time.Hour)
	})
}
