package js

import "sync"

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
