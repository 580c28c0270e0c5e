package job

import (
	"context"
	"slices"
	"sort"
	"sync"
)

// fairQueue limits the number of running jobs and shares their places between creators.
// A free place goes to the creator with the fewest running jobs, among equals to the
// one served longest ago; within a creator to the highest priority, then to the first
// in the queue.
type fairQueue struct {
	mu       sync.Mutex
	free     int
	counted  uint64 // counts arrivals and places given, to order them
	creators map[string]*creator
}

// creator is the creator of jobs that run or wait.
type creator struct {
	running int
	last    uint64 // count at its arrival, or when it last got a place
	waiting []*waiter
}

type waiter struct {
	priority int
	ready    chan struct{}
}

func newFairQueue(limit int) *fairQueue {
	return &fairQueue{free: limit, creators: map[string]*creator{}}
}

// take waits for a place, which give returns. Its error is the cause of ctx.
func (t *fairQueue) take(ctx context.Context, who string, priority int) error {
	w := &waiter{priority, make(chan struct{})}
	t.mu.Lock()
	c := t.creators[who]
	if c == nil {
		t.counted++
		c = &creator{last: t.counted}
		t.creators[who] = c
	}
	at := sort.Search(len(c.waiting), func(i int) bool { return c.waiting[i].priority < priority })
	c.waiting = slices.Insert(c.waiting, at, w)
	t.serve()
	t.mu.Unlock()

	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(c.waiting, w); i >= 0 {
		c.waiting = slices.Delete(c.waiting, i, i+1)
		t.forget(who, c)
	} else { // it got a place meanwhile
		t.release(who)
	}
	return context.Cause(ctx)
}

// give returns a place that take gave.
func (t *fairQueue) give(who string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.release(who)
}

func (t *fairQueue) release(who string) {
	c := t.creators[who]
	c.running--
	t.free++
	t.forget(who, c)
	t.serve()
}

func (t *fairQueue) forget(who string, c *creator) {
	if c.running == 0 && len(c.waiting) == 0 {
		delete(t.creators, who)
	}
}

// serve gives free places to waiting jobs.
func (t *fairQueue) serve() {
	for t.free > 0 {
		next := t.next()
		if next == nil {
			return
		}
		t.free--
		t.counted++
		next.running, next.last = next.running+1, t.counted
		close(next.waiting[0].ready)
		next.waiting = next.waiting[1:]
	}
}

// next returns the creator whose turn it is, or nil if no job waits.
func (t *fairQueue) next() *creator {
	var best *creator
	for _, c := range t.creators {
		if len(c.waiting) == 0 {
			continue
		}
		if best == nil || c.running < best.running || c.running == best.running && c.last < best.last {
			best = c
		}
	}
	return best
}
