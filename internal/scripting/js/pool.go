package js

import (
	"context"
	"sync"
)

// pool holds instances for the next scripts. Used instances are wiped in the background,
// so that most scripts get one that is ready.
type pool struct {
	size int // maximum number of instances

	mu      sync.Mutex
	ready   []*instance // with the template's memory
	used    []*instance // with what the last script left
	wiping  int         // number of instances being wiped
	tidying bool        // a goroutine is wiping
}

// take returns an instance, a ready one if possible, or nil.
func (p *pool) take() (in *instance, ready bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.ready); n > 0 {
		in, p.ready = p.ready[n-1], p.ready[:n-1]
		return in, true
	}
	if n := len(p.used); n > 0 {
		in, p.used = p.used[n-1], p.used[:n-1]
	}
	return in, false
}

// put takes a used instance back, unless there are enough. If tidy is true, the caller
// must call tidy.
func (p *pool) put(in *instance) (taken, tidy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ready)+len(p.used)+p.wiping >= p.size {
		return false, false
	}
	p.used = append(p.used, in)
	tidy = !p.tidying
	p.tidying = true
	return true, tidy
}

// tidy wipes used instances until there are none.
func (p *pool) tidy(wipe func(*instance)) {
	var done *instance
	for {
		in := p.next(done)
		if in == nil {
			return
		}
		wipe(in)
		done = in
	}
}

// next adds the wiped instance to the ready ones, and returns another to wipe or nil.
func (p *pool) next(done *instance) (in *instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if done != nil {
		p.ready = append(p.ready, done)
	}
	p.wiping = 0
	n := len(p.used)
	if n == 0 {
		p.tidying = false
		return nil
	}
	in, p.used = p.used[n-1], p.used[:n-1]
	p.wiping = 1
	return in
}

// empty removes and returns all instances.
func (p *pool) empty() []*instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := append(p.ready, p.used...)
	p.ready, p.used = nil, nil
	return all
}

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
