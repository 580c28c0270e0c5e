// Package memory shares the memory that all scripts of a process may hold together. Each
// run has a Share that grows while the script does. When the Pool is empty, runs wait in
// turn until others end.
package memory

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// Options are the options of a Pool.
type Options struct {
	Total int64 // bytes of all shares together; 0 does not limit, and nothing waits
	// Reserve is the part of Total that only one run may use, the one that waits longest.
	// It should be what one run may hold at most, so that this run ends whatever the
	// others hold. 0 means an eighth of Total; it is at most half.
	Reserve int64
	NoWait  bool // shares never wait
	// Burst is called in its own goroutine after the shares held at least burstSize bytes
	// and most of it was given back: the process may return memory to the system. May be
	// nil.
	Burst func()
}

// burstSize is the amount of memory whose return is worth a garbage collection.
const burstSize = 64 << 20

// Pool is a number of bytes that shares take from. It is safe for concurrent use.
type Pool struct {
	options Options

	mu    sync.Mutex
	last  int64 // number of the newest share
	held  int64
	peak  int64                // of held since the last burst ended
	first *Share               // may use the reserve; nil if none does
	lines map[string][]*waiter // by the name of the share; the oldest share first, so that it ends
	order []string             // names with waiters, the next one first
}

// waiter is a share that waits for n bytes.
type waiter struct {
	share *Share
	n     int64
	ready chan struct{} // closed when the share has them
}

// NewPool makes a pool.
func NewPool(o Options) *Pool {
	if o.Reserve <= 0 {
		o.Reserve = o.Total / 8
	}
	o.Reserve = min(o.Reserve, o.Total/2)
	return &Pool{options: o, lines: map[string][]*waiter{}}
}

// Total returns the bytes that all shares may hold together; 0 means no limit.
func (p *Pool) Total() int64 { return p.options.Total }

// Held returns the bytes that all shares hold.
func (p *Pool) Held() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// Waiting returns the number of shares that wait.
func (p *Pool) Waiting() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, line := range p.lines {
		n += len(line)
	}
	return n
}

// Open makes an empty share. Shares with the same name, such as the principal, wait in one
// line; the lines take turns. wait is how long a share waits for memory.
//
// A share that is opened with the context of another, which Open returned, is part of that
// one: they may use the reserve together. Otherwise a run that waits for a run inside it
// could block both.
func (p *Pool) Open(ctx context.Context, name string, wait time.Duration) (*Share, context.Context) {
	s := &Share{pool: p, name: name, wait: wait}
	s.outer = s
	if outer, ok := ctx.Value(shareKey{}).(*Share); ok && outer.pool == p {
		s.outer = outer.outer
	}
	p.mu.Lock()
	p.last++
	s.number = p.last
	s.outer.open++
	p.mu.Unlock()
	return s, context.WithValue(ctx, shareKey{}, s)
}

// shareKey is the context key of the share of the run.
type shareKey struct{}

// Share is the part of a pool that one run holds.
type Share struct {
	pool  *Pool
	name  string
	wait  time.Duration
	outer *Share // the share it is part of; itself if there is none

	held   int64         // guarded by pool.mu, as is the rest
	waited time.Duration // for memory, all in all
	number int64         // in order of opening
	open   int           // shares that are part of this one and not closed, with itself
	over   bool          // Close was called
}

// Take adds n bytes to the share. If the pool does not have them, Take fails at once unless
// it may wait. The error is a fault with the code limit_exceeded, or the cause of ctx.
func (s *Share) Take(ctx context.Context, n int64, wait bool) error {
	p := s.pool
	p.mu.Lock()
	if len(p.order) == 0 && p.fits(s, n) || s.outer == p.first && p.fits(s, n) {
		p.add(s, n)
		p.mu.Unlock()
		return nil
	}
	if !wait || p.options.NoWait {
		p.mu.Unlock()
		return p.exhausted()
	}
	w := &waiter{share: s, n: n, ready: make(chan struct{})}
	if len(p.lines[s.name]) == 0 {
		p.order = append(p.order, s.name)
	}
	line := p.lines[s.name]
	at, _ := slices.BinarySearchFunc(line, s.number, func(w *waiter, n int64) int { return cmp.Compare(w.share.number, n) })
	p.lines[s.name] = slices.Insert(line, at, w)
	p.admit()
	p.mu.Unlock()
	return p.await(ctx, w)
}

// await waits until w is ready, its time is over or ctx ends.
func (p *Pool) await(ctx context.Context, w *waiter) error {
	began := time.Now()
	defer pause(ctx)()
	defer func() {
		p.mu.Lock()
		w.share.waited += time.Since(began)
		p.mu.Unlock()
	}()
	timer := time.NewTimer(w.share.wait)
	defer timer.Stop()
	var err error
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
		err = p.exhausted()
	}
	if !p.giveUp(w) {
		return nil
	}
	return err
}

// giveUp removes a waiter, unless it got its memory meanwhile.
func (p *Pool) giveUp(w *waiter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-w.ready:
		return false
	default:
	}
	p.drop(w)
	p.admit()
	return true
}

// Waited returns how long the share has waited for memory.
func (s *Share) Waited() time.Duration {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	return s.waited
}

// exhausted is the error of a share that gets no more memory.
func (p *Pool) exhausted() error {
	return fault.New(fault.Limit, "all scripts together hold the %d MiB of memory that they may hold, and none became free in time", p.options.Total>>20).
		WithHint("try again when other scripts have ended, or raise scripts.total_memory_mb")
}

// Count adds n bytes that exist already, whether the pool has them or not. With a negative
// n it is Give.
func (s *Share) Count(n int64) {
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(s, n)
	p.admit()
}

// Give returns n bytes.
func (s *Share) Give(n int64) { s.Count(-n) }

// Close returns everything.
func (s *Share) Close() {
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.add(s, -s.held)
	if s.over {
		return
	}
	s.over = true
	if s.outer.open--; s.outer.open == 0 && p.first == s.outer {
		p.first = nil
	}
	p.admit()
}

// fits reports whether a share may take n more bytes; mu is held.
func (p *Pool) fits(s *Share, n int64) bool {
	if p.options.Total <= 0 {
		return true
	}
	limit := p.options.Total
	if p.first != s.outer {
		limit -= p.options.Reserve
	}
	return p.held+n <= limit
}

// add changes what a share holds; mu is held.
func (p *Pool) add(s *Share, n int64) {
	n = max(n, -s.held)
	s.held += n
	p.held += n
	p.peak = max(p.peak, p.held)
	if p.peak >= burstSize && p.held <= p.peak/4 {
		p.peak = p.held
		if p.options.Burst != nil {
			go p.options.Burst()
		}
	}
}

// admit gives memory to waiting shares, in turn; mu is held. If the next one does not fit,
// it may use the reserve, unless another share does.
func (p *Pool) admit() {
	for len(p.order) > 0 {
		w := p.lines[p.order[0]][0]
		if !p.fits(w.share, w.n) && p.first == nil {
			p.first = w.share.outer
		}
		if !p.fits(w.share, w.n) && !p.promote() {
			return
		}
		if p.fits(w.share, w.n) {
			p.grant(w)
		}
	}
}

// promote grants what the share with the reserve waits for, wherever it is in line; mu is
// held.
func (p *Pool) promote() bool {
	if p.first == nil {
		return false
	}
	for _, name := range p.order {
		for _, w := range p.lines[name] {
			if w.share.outer == p.first && p.fits(w.share, w.n) {
				p.grant(w)
				return true
			}
		}
	}
	return false
}

// grant gives a waiter its bytes and the next name its turn; mu is held.
func (p *Pool) grant(w *waiter) {
	p.add(w.share, w.n)
	p.drop(w)
	if at := slices.Index(p.order, w.share.name); at >= 0 {
		p.order = append(slices.Delete(p.order, at, at+1), w.share.name)
	}
	close(w.ready)
}

// drop removes a waiter from its line; mu is held.
func (p *Pool) drop(w *waiter) {
	name := w.share.name
	line := slices.DeleteFunc(p.lines[name], func(o *waiter) bool { return o == w })
	if len(line) > 0 {
		p.lines[name] = line
		return
	}
	delete(p.lines, name)
	p.order = slices.DeleteFunc(p.order, func(n string) bool { return n == name })
}
