package script

import (
	"sync"

	"github.com/luanette/luanette/lua"
)

// program is a compiled source and the preludes it needs. Nothing in it belongs
// to a state: it may run in many at once.
type program struct {
	chunk *lua.Proto
	needs preludeSet
}

// programs keeps what was compiled lately, since most scripts run more than once:
// published ones, jobs, handlers of events. It has two generations. What is asked
// for moves to the younger one; when that is full, the older one is forgotten. It
// is safe for concurrent use; the zero value is empty and ready.
type programs struct {
	mu         sync.Mutex
	young, old map[programKey]program
	weight     int // of young
}

// programKey is all that a compiled source depends on.
type programKey struct {
	name, source string
	statements   bool // it was not tried as an expression
}

// weight is about how many bytes a program takes in memory.
func (k programKey) weight() int { return 1<<10 + 10*(len(k.name)+len(k.source)) }

// generation is the weight of a full generation.
const generation = 4 << 20

// get finds a program, or makes and keeps it.
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

// keep puts a program into the younger generation; mu is held. One that would
// crowd out many others is not worth it.
func (p *programs) keep(key programKey, one program) {
	weight := key.weight()
	if weight > generation/8 {
		return
	}
	if p.young == nil || p.weight+weight > generation {
		p.young, p.old, p.weight = map[programKey]program{}, p.young, 0
	}
	if _, ok := p.young[key]; !ok { // another may have been as fast
		p.weight += weight
	}
	p.young[key] = one
}
