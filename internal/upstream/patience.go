package upstream

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"
)

// Why patience ends.
var (
	errImpatient = errors.New("no answer and no progress in time")
	errOverdue   = errors.New("not done in time, for all its progress")
)

// patience is how long a call may take: so long without a sign of progress, and
// so long at all. Waiting for the caller's own answer does not count as silence.
//
// It is the call's context as well, which ends when patience does, or with the
// caller's. Hardly ever does anybody have to wait for that, and a context to wait for
// costs more than the rest of it: so it is made for the first who does.
type patience struct {
	context.Context // the caller's
	vigil           *vigil
	limit           time.Duration // without a sign of progress
	end             time.Time     // of all patience

	mu      sync.Mutex
	stirred bool // there was such a sign, or a rest
	ended   bool // by itself, or with the call
	own     context.Context
	cancel  context.CancelCauseFunc // of own; both nil until they are needed
	holder  *directConn             // which hangs up at the end

	due        time.Time // when it ends; this and the rest belong to the vigil
	prev, next *patience
}

// newPatience begins a call's; the caller stops it.
func newPatience(ctx context.Context, v *vigil, limit, total time.Duration) *patience {
	now := time.Now()
	p := &patience{Context: ctx, vigil: v, limit: limit, end: now.Add(total)}
	v.begin(p, now, now.Add(limit))
	return p
}

// Done implements context.Context.
func (p *patience) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.real().Done()
}

// Err implements context.Context.
func (p *patience) Err() error { return p.current().Err() }

// Value implements context.Context; the cause of an end is such a value, too.
func (p *patience) Value(key any) any { return p.current().Value(key) }

// current is the caller's context until there is a difference.
func (p *patience) current() context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.own == nil && !p.ended {
		return p.Context
	}
	return p.real()
}

// real is the context that others can wait for. p.mu is held.
func (p *patience) real() context.Context {
	if p.own == nil {
		p.own, p.cancel = context.WithCancelCause(p.Context)
		if p.ended {
			p.cancel(context.Canceled)
		}
	}
	return p.own
}

// over ends what took too long.
func (p *patience) over() {
	p.mu.Lock()
	late := p.stirred && !time.Now().Before(p.end)
	p.mu.Unlock()
	if late {
		p.abandon(errOverdue)
	} else {
		p.abandon(errImpatient)
	}
}

// abandon ends the call.
func (p *patience) abandon(why error) {
	p.mu.Lock()
	p.real()
	p.mu.Unlock()
	p.finish(why)
}

// stop is told that the call is over, and ends what still goes on for it.
func (p *patience) stop() {
	p.vigil.end(p)
	p.finish(context.Canceled)
}

// finish ends what there is to end.
func (p *patience) finish(why error) {
	p.mu.Lock()
	p.ended = true
	cancel, holder := p.cancel, p.holder
	p.mu.Unlock()
	if cancel != nil {
		cancel(why)
	}
	if holder != nil {
		holder.hangUp()
	}
}

// hold has a connection hang up at the end, unless there is one already or the end has
// come. The end of the caller's context is the connection's to watch for.
func (p *patience) hold(c *directConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.holder != nil || p.ended {
		return false
	}
	p.holder = c
	return true
}

// letGo is for the connection that holds; it tells whether that was not told to hang
// up, and will not be.
func (p *patience) letGo() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holder = nil
	return !p.ended
}

// touch is told of every sign of progress.
func (p *patience) touch() { p.last(p.limit) }

// pause lets silence be until resume.
func (p *patience) pause()  { p.last(math.MaxInt64) }
func (p *patience) resume() { p.last(p.limit) }

// last has patience end after so long, and not later than at its end.
func (p *patience) last(silence time.Duration) {
	p.mu.Lock()
	p.stirred = true
	p.mu.Unlock()
	now := time.Now()
	p.vigil.move(p, now, now.Add(min(silence, p.end.Sub(now))))
}
