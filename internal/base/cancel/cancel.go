// Package cancel has contexts that can be cancelled and cost next to nothing until
// somebody waits for their end.
//
// Those of the standard library are made to be waited for: each is told to the one
// around it, with a channel and a map there, even when all is over before anybody
// looks. A call that is passed on goes through several, and they were a tenth of its
// memory.
package cancel

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Context ends with its parent, when it is cancelled, or when it is over. Its zero
// value is made one by Begin; as a part of what it is the lifetime of it takes no
// memory of its own. context.Cause says why it ended, as of any other.
type Context struct {
	parent context.Context
	over   atomic.Bool
	real   atomic.Pointer[real] // nil as long as nobody waits for it

	making sync.Mutex
}

// real is a context that can be waited for.
type real struct {
	context.Context
	cancel context.CancelCauseFunc
}

// Begin makes c a child of parent.
func (c *Context) Begin(parent context.Context) { c.parent = parent }

// Cancel ends c and says why.
func (c *Context) Cancel(why error) { c.realize().cancel(why) }

// End ends c when there is nothing left to do in it.
func (c *Context) End() {
	c.over.Store(true)
	if r := c.real.Load(); r != nil {
		r.cancel(context.Canceled)
	}
}

// Done implements context.Context.
func (c *Context) Done() <-chan struct{} { return c.realize().Done() }

// Err implements context.Context.
func (c *Context) Err() error { return c.current().Err() }

// Value implements context.Context; why a context ended is such a value, too.
func (c *Context) Value(key any) any { return c.current().Value(key) }

// Deadline implements context.Context.
func (c *Context) Deadline() (time.Time, bool) { return c.parent.Deadline() }

// current is the parent as long as there is no difference.
func (c *Context) current() context.Context {
	if c.real.Load() == nil && !c.over.Load() {
		return c.parent
	}
	return c.realize()
}

func (c *Context) realize() *real {
	if r := c.real.Load(); r != nil {
		return r
	}
	c.making.Lock()
	defer c.making.Unlock()
	if r := c.real.Load(); r != nil {
		return r
	}
	r := &real{}
	r.Context, r.cancel = context.WithCancelCause(c.parent)
	c.real.Store(r)
	if c.over.Load() { // End may have come before there was anything to cancel
		r.cancel(context.Canceled)
	}
	return r
}
