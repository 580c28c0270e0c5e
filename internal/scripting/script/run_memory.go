package script

import (
	"context"
	"time"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/scripting/js"
	"github.com/luanette/luanette/internal/scripting/memory"
)

// How long a run waits for memory that other runs hold. Its own time does not pass
// meanwhile.
const (
	memoryWait     = 2 * time.Minute
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
