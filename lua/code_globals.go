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
		switch op := i.op(); {
		case op == opGetTabUp && i.b() == env:
			visit(p.constants[i.c()].str().s)
		case op == opSetTabUp && i.a() == env:
			visit(p.constants[i.b()].str().s)
		case (op == opGetUpval || op == opSetUpval) && i.b() == env:
			named = false
		}
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
