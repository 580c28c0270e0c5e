package cancel

import (
	"context"
	"errors"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type key struct{}

// Whoever asks learns that a context ended and why, whether anybody waited for it
// or not.
func TestEnds(t *testing.T) {
	t.Parallel()
	why := errors.New("why")
	ends := map[string]struct {
		end   func(c *Context, parent context.CancelCauseFunc)
		cause error
	}{
		"parent":         {func(_ *Context, parent context.CancelCauseFunc) { parent(why) }, why},
		"cancelled":      {func(c *Context, _ context.CancelCauseFunc) { c.Cancel(why) }, why},
		"over":           {func(c *Context, _ context.CancelCauseFunc) { c.End() }, context.Canceled},
		"cancelled, end": {func(c *Context, _ context.CancelCauseFunc) { c.Cancel(why); c.End() }, why},
		"cancelled twice": {func(c *Context, parent context.CancelCauseFunc) {
			c.Cancel(why)
			c.Cancel(errors.New("later"))
			parent(errors.New("later still"))
		}, why},
	}
	for name, test := range ends {
		for _, waited := range []bool{false, true} {
			parent, leave := context.WithCancelCause(context.WithValue(t.Context(), key{}, "value"))
			var c Context
			c.Begin(parent)
			if c.Err() != nil || context.Cause(&c) != nil || c.Value(key{}) != "value" {
				t.Errorf("%s: begins with %v, %v, %v", name, c.Err(), context.Cause(&c), c.Value(key{}))
			}
			inner := context.WithValue(&c, key{}, "inner")
			child := inner
			if waited {
				var cancel func()
				child, cancel = context.WithCancel(inner)
				defer cancel()
			}
			test.end(&c, leave)
			for _, ctx := range []context.Context{&c, inner, child} {
				<-ctx.Done()
				if !errors.Is(ctx.Err(), context.Canceled) || !errors.Is(context.Cause(ctx), test.cause) {
					t.Errorf("%s, waited %v: ends with %v, %v", name, waited, ctx.Err(), context.Cause(ctx))
				}
			}
			if c.Value(key{}) != "value" || child.Value(key{}) != "inner" {
				t.Errorf("%s: values are %v and %v", name, c.Value(key{}), child.Value(key{}))
			}
			leave(nil)
		}
	}
}

// What begins in a context that is over is over.
func TestLateChildren(t *testing.T) {
	t.Parallel()
	var c Context
	c.Begin(t.Context())
	c.End()
	child, cancel := context.WithCancel(&c)
	defer cancel()
	called := make(chan struct{})
	context.AfterFunc(&c, func() { close(called) })
	<-called
	if child.Err() == nil || c.Err() == nil {
		t.Errorf("child %v, context %v", child.Err(), c.Err())
	}
}

// Those who wait and those who end it may come at the same time.
func TestConcurrently(t *testing.T) {
	t.Parallel()
	why := errors.New("why")
	for range 200 {
		var c Context
		c.Begin(t.Context())
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				child, cancel := context.WithCancel(&c)
				defer cancel()
				<-child.Done()
				if got := context.Cause(child); !errors.Is(got, why) && !errors.Is(got, context.Canceled) {
					t.Errorf("ended because %v", got)
				}
			})
		}
		all.Go(func() { c.Cancel(why) })
		all.Go(c.End)
		all.Wait()
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	parent, cancel := context.WithTimeout(t.Context(), 1<<40)
	defer cancel()
	var c Context
	c.Begin(parent)
	want, _ := parent.Deadline()
	if got, ok := c.Deadline(); !ok || !got.Equal(want) {
		t.Errorf("deadline %v, want %v", got, want)
	}
}

// A context in a context in a context, as of a call that is passed on.
func BenchmarkThree(b *testing.B) {
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var all [3]Context
			ctx := context.Background()
			for i := range all {
				all[i].Begin(ctx)
				ctx = &all[i]
			}
			if ctx.Err() != nil {
				b.Fatal(ctx.Err())
			}
			for i := range all {
				all[i].End()
			}
		}
	})
	b.Run("context's", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			ctx := context.Background()
			var ends [3]context.CancelCauseFunc
			for i := range ends {
				ctx, ends[i] = context.WithCancelCause(ctx)
			}
			if ctx.Err() != nil {
				b.Fatal(ctx.Err())
			}
			for i := range ends {
				ends[i](nil)
			}
		}
	})
}
