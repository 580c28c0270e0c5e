package js

import (
	"context"
	"sync"
)

// tally counts operations in progress. Unlike with a sync.WaitGroup, a waiter can give up
// when its ctx ends. If nothing is in progress, wait succeeds even if ctx has ended.
type tally struct {
	mu    sync.Mutex
	count int
	none  chan struct{} // closed when count falls to zero; nil without waiters
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

// run calls f in a goroutine and counts it while it runs.
func (t *tally) run(f func()) {
	t.add()
	go func() {
		defer t.done()
		f()
	}()
}

// wait returns nil once nothing is in progress, or the cause of ctx if it ends first.
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
