package js

import (
	"context"
	"errors"
	"time"
)

// grace is the time that native code gets between the soft stop, which the instance
// survives, and the trap, which it does not.
const grace = 100 * time.Millisecond

// errTime is the cause of a run's context that ended because of Limits.Time.
var errTime = errors.New("the script ran too long")

// watch decides when a run must stop. Only the script's goroutine calls it.
type watch struct {
	deadline time.Time
	allowed  time.Duration // from the start to the deadline
	softened time.Time     // when the script was first ordered to stop; zero before
}

// newWatch watches over a run whose ctx has a deadline.
func newWatch(ctx context.Context) watch {
	deadline, _ := ctx.Deadline()
	return watch{deadline: deadline, allowed: max(0, time.Until(deadline))}
}

// stop reports whether the guest must stop now. Scripts stop at once with an exception that
// they cannot catch; native code traps after the grace period. stop reads the clock too,
// because a busy guest can delay the timers of the process.
func (w *watch) stop(ctx context.Context, native bool) bool {
	if w.softened.IsZero() {
		if ctx.Err() == nil && time.Now().Before(w.deadline) {
			return false
		}
		w.softened = time.Now()
	}
	return !native || time.Since(w.softened) > grace
}

// stopped reports whether the run was ordered to stop.
func (w *watch) stopped() bool { return !w.softened.IsZero() }
