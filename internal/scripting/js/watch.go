package js

import (
	"context"
	"errors"
	"math"
	"time"
)

// grace is the time that native code gets between the soft stop, which the instance
// survives, and the trap, which it does not.
const grace = 100 * time.Millisecond

// errTime is the cause of a run's context that ended because of Limits.Time.
var errTime = errors.New("the script ran too long")

// watch decides when a run must stop. Only the script's goroutine calls it.
type watch struct {
	allowed  time.Duration // from the start to the deadline of the context, which may move
	softened time.Time     // when the script was first ordered to stop; zero before

	steps int64 // what is left of Limits.Steps
	spent bool  // the steps are used up

	meter    Meter       // may be nil
	outdated func() bool // reports whether there is machine code for a script that is interpreted
	effects  bool        // the host knows of the run: it asked for something or wrote a line
	again    bool        // the run ends here and starts again in machine code
}

// newWatch watches over a run, with the deadline of ctx.
func newWatch(ctx context.Context, limits Limits, outdated func() bool) watch {
	deadline, _ := ctx.Deadline()
	steps := limits.Steps
	if steps == 0 {
		steps = math.MaxInt64
	}
	return watch{allowed: max(0, time.Until(deadline)), steps: steps, meter: limits.Meter, outdated: outdated}
}

// pollSteps is how many branches of a script pass between two polls.
const pollSteps = 10_000

// poll is stop, called by the guest; it counts the steps.
func (w *watch) poll(ctx context.Context, native bool) bool {
	if w.meter != nil {
		w.meter.Tick()
	}
	if w.steps -= pollSteps; w.steps < 0 && !w.stopped() {
		w.spent, w.softened = true, time.Now()
	}
	return w.stop(ctx, native)
}

// stop reports whether the guest must stop now. Scripts stop at once with an exception that
// they cannot catch; native code traps after the grace period. stop reads the clock too,
// because a busy guest can delay the timers of the process. A run without effects stops
// to start again when it can run faster.
func (w *watch) stop(ctx context.Context, native bool) bool {
	if w.again = w.again || !w.effects && w.outdated(); w.again {
		return true
	}
	if w.softened.IsZero() {
		if deadline, ok := ctx.Deadline(); ctx.Err() == nil && (!ok || time.Now().Before(deadline)) {
			return false
		}
		w.softened = time.Now()
	}
	return !native || time.Since(w.softened) > grace
}

// stopped reports whether the run was ordered to stop.
func (w *watch) stopped() bool { return !w.softened.IsZero() }
