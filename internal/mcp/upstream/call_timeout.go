package upstream

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// Causes of a call's context when the server took too long.
var (
	errNoProgress = errors.New("no answer and no progress in time")
	errMaxTime    = errors.New("not finished within the maximum time, despite progress")
)

// callTimeout bounds a call: limit without progress, and until end in total.
type callTimeout struct {
	cancel   context.CancelCauseFunc
	detach   func() bool // stops watching the caller's context
	timer    *time.Timer
	limit    time.Duration
	end      time.Time
	extended atomic.Bool // there was progress, or a question to the caller
}

// startCallTimeout returns the context of a call. It ends with parent, with the
// timeout, or by cancel, but not when the call succeeds: the HTTP transport may
// still be reading the end of the response then. The caller calls stop.
func startCallTimeout(parent context.Context, limit, total time.Duration) (context.Context, *callTimeout) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	t := &callTimeout{cancel: cancel, limit: limit, end: time.Now().Add(total)}
	t.detach = context.AfterFunc(parent, func() { cancel(context.Cause(parent)) })
	t.timer = time.AfterFunc(limit, t.expire)
	return ctx, t
}

func (t *callTimeout) expire() {
	if t.extended.Load() && !time.Now().Before(t.end) {
		t.cancel(errMaxTime)
	} else {
		t.cancel(errNoProgress)
	}
}

// stop releases the timer and the caller's context. It cancels the context of a
// call that failed, so that nothing keeps running for it.
func (t *callTimeout) stop(failed bool) {
	t.timer.Stop()
	t.detach()
	if failed {
		t.cancel(context.Canceled)
	}
}

// extend restarts the limit, after progress or after the caller's reply.
func (t *callTimeout) extend() { t.reset(t.limit) }

// pause lets only the total time count, while the caller is asked.
func (t *callTimeout) pause() { t.reset(time.Until(t.end)) }

func (t *callTimeout) reset(limit time.Duration) {
	t.extended.Store(true)
	t.timer.Reset(min(limit, time.Until(t.end)))
}
