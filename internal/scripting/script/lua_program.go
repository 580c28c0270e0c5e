package script

import (
	"sync"

	"github.com/luanette/luanette/lua"
)

// program is a compiled source and the preludes it needs. It does not belong to a state
// and may run in many at once.
type program struct {
	chunk *lua.Proto
	needs preludeSet
}

// programs caches compiled sources, because most scripts run more than once: published
// ones, jobs, event handlers. It has two generations. A source that is used moves to the
// younger one; when that is full, the older one is dropped. It is safe for concurrent
// use; the zero value is ready to use.
type programs struct {
	mu         sync.Mutex
	young, old map[programKey]program
	weight     int // of young
}

// programKey is everything that a compiled source depends on.
type programKey struct {
	name, source string
	statements   bool // not tried as an expression
}

// weight returns the approximate size of a program in memory, in bytes.
func (k programKey) weight() int { return 1<<10 + 10*(len(k.name)+len(k.source)) }

// generation is the weight of a full generation.
const generation = 4 << 20

// get returns a program from the cache, or compiles it.
func (p *programs) get(key programKey, compile func() (program, error)) (program, error) {
	if found, ok := p.find(key); ok {
		return found, nil
	}
	made, err := compile()
	if err == nil {
		p.mu.Lock()
		p.keep(key, made)
		p.mu.Unlock()
	}
	return made, err
}

func (p *programs) find(key programKey) (program, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if found, ok := p.young[key]; ok {
		return found, true
	}
	found, ok := p.old[key]
	if ok {
		p.keep(key, found)
	}
	return found, ok
}

// keep puts a program into the younger generation; mu is held. A program that would
// displace many others is not cached.
func (p *programs) keep(key programKey, one program) {
	weight := key.weight()
	if weight > generation/8 {
		return
	}
	if p.young == nil || p.weight+weight > generation {
		p.young, p.old, p.weight = map[programKey]program{}, p.young, 0
	}
	if _, ok := p.young[key]; !ok { // another goroutine may have added it
		p.weight += weight
	}
	p.young[key] = one
}
