package script

import (
	"context"
	"fmt"
	"time"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/scripting/js"
	"github.com/luanette/luanette/internal/scripting/memory"
)

// How long a run waits for memory that other runs hold. Waiting is part of the run's time.
const (
	memoryWait     = 20 * time.Second
	longMemoryWait = 10 * time.Minute // of runs without a time limit
)

// memoryOf opens the run's share of the memory of all runs. Principals take turns when
// there is none left. A run inside another run counts as part of it.
func (r *Runner) memoryOf(ctx context.Context, limits Limits) (*memory.Share, context.Context) {
	wait := memoryWait
	if limits.Time < 0 {
		wait = longMemoryWait
	}
	return r.options.Memory.Open(ctx, principal.Of(ctx).ID, wait)
}

// reserve is the run's share for the JavaScript engine; nil if there is none.
func (l Limits) reserve() js.Reserve {
	if l.share == nil {
		return nil
	}
	return l.share
}

// tellWait adds to a failure how much of the run's time passed while it waited for memory,
// if that may be why it failed.
func tellWait(failure *Error, share *memory.Share) {
	waited := share.Waited().Round(100 * time.Millisecond)
	if failure.Kind == Timeout && waited >= time.Second {
		failure.Troubleshooting = append(failure.Troubleshooting, fmt.Sprintf(
			"It waited %s of that for memory that other scripts held: try again when they have ended, or raise scripts.total_memory_mb", waited))
	}
}
