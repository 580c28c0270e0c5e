package upstream

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/luanette/luanette/internal/base/cancel"
	"github.com/luanette/luanette/internal/base/clock"
)

// Why patience ends.
var (
	errNoProgress = errors.New("no answer and no progress in time")
	errMaxTime    = errors.New("not done in time, for all its progress")
)

// patience is how long a call may take: so long without a sign of progress, and
// so long at all. Waiting for the caller's own answer does not count as silence. It is
// the call's context as well, which ends when patience does, or with the caller's.
type patience struct {
	cancel.Context
	vigil   *clock.Vigil
	wait    clock.Wait
	limit   time.Duration // without a sign of progress
	end     time.Time     // of all patience
	stirred atomic.Bool   // there was such a sign, or a rest
}

// newPatience begins a call's; the caller stops it.
func newPatience(ctx context.Context, v *clock.Vigil, limit, total time.Duration) *patience {
	p := &patience{vigil: v, limit: limit, end: time.Now().Add(total)}
	p.Begin(ctx)
	v.Begin(&p.wait, p, limit)
	return p
}

// Overdue ends what took too long.
func (p *patience) Overdue() {
	if p.stirred.Load() && !time.Now().Before(p.end) {
		p.Cancel(errMaxTime)
	} else {
		p.Cancel(errNoProgress)
	}
}

// stop is told that the call is over, and ends what still goes on for it.
func (p *patience) stop() {
	p.vigil.End(&p.wait)
	p.End()
}

// touch is told of every sign of progress.
func (p *patience) touch() { p.last(p.limit) }

// pause lets silence be until resume.
func (p *patience) pause()  { p.last(math.MaxInt64) }
func (p *patience) resume() { p.last(p.limit) }

// last has patience end after so long, and not later than at its end.
func (p *patience) last(silence time.Duration) {
	p.stirred.Store(true)
	p.vigil.Move(&p.wait, min(silence, time.Until(p.end)))
}
