package script

import "github.com/luanette/luanette/lua"

// program is a compiled source and the preludes it needs. It does not belong to a state
// and may run in many at once.
type program struct {
	chunk *lua.Proto
	needs preludeSet
}

// programs caches compiled sources, because most scripts run more than once: published
// ones, jobs, event handlers.
type programs struct{ recent[programKey, program] }

// programKey is everything that a compiled source depends on.
type programKey struct {
	name, source string
	statements   bool // not tried as an expression
}

// weight returns the approximate size of a program in memory, in bytes.
func (k programKey) weight() int { return 1<<10 + 10*(len(k.name)+len(k.source)) }

// get returns a program from the cache, or compiles it.
func (p *programs) get(key programKey, compile func() (program, error)) (program, error) {
	if found, ok := p.find(key, key.weight()); ok {
		return found, nil
	}
	made, err := compile()
	if err == nil {
		p.keep(key, made, key.weight())
	}
	return made, err
}
