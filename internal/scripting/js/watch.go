package js

import (
	"context"
	"errors"
	"time"
)

// grace is what native code gets between the soft stop, which the instance survives, and
// the trap, which it does not.
const grace = 100 * time.Millisecond

// errTime is the cause of a run's context that ended by Limits.Time.
var errTime = errors.New("the script ran too long")

// watch decides when a run must stop. It is asked from the script's own goroutine only.
type watch struct {
	deadline time.Time
	allowed  time.Duration // from the start to the deadline
	softened time.Time     // when the script was first told to stop; zero before
}

// newWatch watches over a run whose ctx has a deadline.
func newWatch(ctx context.Context) watch {
	deadline, _ := ctx.Deadline()
	return watch{deadline: deadline, allowed: max(0, time.Until(deadline))}
}

// stop tells whether the guest must stop now. Scripts stop at once by an exception that
// they cannot catch; native code traps after the grace. The clock is read besides ctx,
// because a busy guest can keep the timers of the process from firing.
func (w *watch) stop(ctx context.Context, native bool) bool {
	if w.softened.IsZero() {
		if ctx.Err() == nil && time.Now().Before(w.deadline) {
			return false
		}
		w.softened = time.Now()
	}
	return !native || time.Since(w.softened) > grace
}

// stopped tells whether the run was told to stop.
func (w *watch) stopped() bool { return !w.softened.IsZero() }
