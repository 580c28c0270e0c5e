package lua

// Globals tells which globals code can touch, before it runs: visit is called
// with each name the chunk and the functions in it mention, the same name
// perhaps more than once. It returns false when the code can reach globals
// without naming them, because it takes hold of _ENV itself. What it may then do
// with the values it finds, such as _G and load, is for the caller to judge.
func (p *Proto) Globals(visit func(name string)) bool {
	return p.globalsAt(0, visit)
}

// globalsAt is Globals of a function that has the chunk's _ENV as upvalue env.
func (p *Proto) globalsAt(env int, visit func(name string)) bool {
	named := true
	for _, i := range p.code {
		upvalue, key := i.upvalue()
		if upvalue != env {
			continue
		}
		if key < 0 {
			named = false
			continue
		}
		visit(p.constants[key].str().s)
	}
	for _, inner := range p.protos {
		for at, d := range inner.upvalues {
			if !d.inStack && int(d.index) == env {
				named = inner.globalsAt(at, visit) && named
			}
		}
	}
	return named
}

// upvalue returns the upvalue an instruction reads or writes, or -1, and the
// constant that is the key of the field it uses of it, or -1 for the upvalue
// itself.
func (i instruction) upvalue() (index, key int) {
	switch i.op() {
	case opGetTabUp:
		return i.b(), i.c()
	case opSetTabUp:
		return i.a(), i.b()
	case opGetUpval, opSetUpval:
		return i.b(), -1
	}
	return -1, -1
}
