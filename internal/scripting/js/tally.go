package js

import (
	"context"
	"sync"
)

// tally counts what is under way. Unlike a sync.WaitGroup one can stop waiting for
// it, and nothing under way is nothing to wait for, however late it is.
type tally struct {
	mu    sync.Mutex
	count int
	none  chan struct{} // closed when count falls to zero; nil while nobody waits
}

func (t *tally) add() {
	t.mu.Lock()
	t.count++
	t.mu.Unlock()
}

func (t *tally) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count--; t.count == 0 && t.none != nil {
		close(t.none)
		t.none = nil
	}
}

// run counts f while it runs beside its caller.
func (t *tally) run(f func()) {
	t.add()
	go func() {
		defer t.done()
		f()
	}()
}

// wait returns nil once nothing is under way, or why ctx ended before.
func (t *tally) wait(ctx context.Context) error {
	t.mu.Lock()
	if t.count == 0 {
		t.mu.Unlock()
		return nil
	}
	if t.none == nil {
		t.none = make(chan struct{})
	}
	none := t.none
	t.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
