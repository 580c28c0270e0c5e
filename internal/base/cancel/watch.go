package cancel

import (
	"context"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
)

// Watch calls a function when a context ends, as context.AfterFunc does. But it
// begins to wait for that only after a moment: what is over by then, as most things
// are, has not paid for it. One Watch serves one thing after the other.
type Watch struct {
	vigil *clock.Vigil
	wait  clock.Wait

	mu   sync.Mutex
	ctx  context.Context // nil: nothing is watched
	f    func()
	stop func() bool // nil: the moment is not over
}

// moment is how long an end may remain unnoticed.
const moment = 10 * time.Millisecond

// Begin watches over ctx until End.
func (w *Watch) Begin(ctx context.Context, vigil *clock.Vigil, f func()) {
	w.mu.Lock()
	w.ctx, w.f = ctx, f
	w.mu.Unlock()
	w.vigil = vigil
	vigil.Begin(&w.wait, w, moment)
}

// Overdue implements clock.Waiter: the moment is over. Should it come so late that
// something else is watched by now, that has its moment cut short.
func (w *Watch) Overdue() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx != nil && w.stop == nil {
		w.stop = context.AfterFunc(w.ctx, w.f)
	}
}

// End watches no longer, and tells whether f was not called, nor will be.
func (w *Watch) End() bool {
	w.vigil.End(&w.wait)
	w.mu.Lock()
	stop := w.stop
	w.ctx, w.f, w.stop = nil, nil, nil
	w.mu.Unlock()
	return stop == nil || stop()
}
