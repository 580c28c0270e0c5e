package js

import "sync"

// pool keeps instances for the next scripts. What a script left in one is wiped out
// beside the scripts that run meanwhile, so that most find one that is ready.
type pool struct {
	size int // how many are kept at most

	mu      sync.Mutex
	ready   []*instance // with the template's memory
	used    []*instance // with what the last script left
	wiping  int         // one that is being wiped, or none
	tidying bool        // somebody does so
}

// take gives an instance, a ready one if there is any, or nil.
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

// put takes a used instance back, unless there are enough. Whoever is told to tidy does
// so until there is nothing left to do.
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

// next puts the one that is done with the ready ones, and gives another to wipe or nil.
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

// empty gives all instances there are.
func (p *pool) empty() []*instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := append(p.ready, p.used...)
	p.ready, p.used = nil, nil
	return all
}
