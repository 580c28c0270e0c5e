package lua

// funcScope is a function being parsed.
type funcScope struct {
	parent *funcScope
	fn     *function
	block  *blockScope
	active int // local variables in scope
}

// blockScope is a block being parsed.
type blockScope struct {
	parent *blockScope
	block  *block
	vars   []*variable
}

const (
	maxLocals   = 200
	maxUpvalues = 255
)

func (p *parser) openFunction(line int) *funcScope {
	f := &funcScope{parent: p.scope, fn: &function{line: line}}
	p.scope = f
	return f
}

func (p *parser) closeFunction() { p.scope = p.scope.parent }

func (p *parser) openBlock() *block {
	b := &block{}
	p.scope.block = &blockScope{parent: p.scope.block, block: b}
	return b
}

func (p *parser) closeBlock() {
	b := p.scope.block
	for _, v := range b.vars {
		if v.captured || v.kind == varClose {
			b.block.close = true
			p.scope.fn.close = true
		}
	}
	p.scope.active -= len(b.vars)
	b.block.endLine = p.line
	p.scope.block = b.parent
}

// declare brings variables into scope.
func (p *parser) declare(vars ...*variable) {
	p.scope.block.vars = append(p.scope.block.vars, vars...)
	p.scope.active += len(vars)
	if p.scope.active > maxLocals {
		panic(p.limitError(p.scope, "local variables", maxLocals))
	}
}

// find returns the variable a name means in the function itself, or nil.
func (f *funcScope) find(name string) *variable {
	for b := f.block; b != nil; b = b.parent {
		for i := len(b.vars) - 1; i >= 0; i-- {
			if b.vars[i].name == name {
				return b.vars[i]
			}
		}
	}
	return nil
}

// upvalue returns the index of the upvalue a name means in f, adding it if the
// name belongs to an enclosing function, or -1. A variable that is a
// compile-time constant is returned instead.
func (p *parser) upvalue(f *funcScope, name string) (index int, constant *variable) {
	for i := range f.fn.upvalues {
		if f.fn.upvalues[i].name == name {
			return i, nil
		}
	}
	if f.parent == nil {
		return -1, nil
	}
	ref := upvalueRef{name: name}
	if v := f.parent.find(name); v != nil {
		if v.kind == varConstant {
			return -1, v
		}
		v.captured = true
		ref.local, ref.kind = v, v.kind
	} else {
		outer, constant := p.upvalue(f.parent, name)
		if constant != nil || outer < 0 {
			return -1, constant
		}
		ref.outer, ref.kind = outer, f.parent.fn.upvalues[outer].kind
	}
	if len(f.fn.upvalues) >= maxUpvalues {
		panic(p.limitError(f, "upvalues", maxUpvalues))
	}
	f.fn.upvalues = append(f.fn.upvalues, ref)
	return len(f.fn.upvalues) - 1, nil
}

// resolve returns the expression a name means.
func (p *parser) resolve(name string, line int) expr {
	if v := p.variable(name, line); v != nil {
		return v
	}
	return &indexExpr{obj: p.variable("_ENV", line), key: p.stringConst(name, line), line: line}
}

// variable returns the local or upvalue a name means, or nil.
func (p *parser) variable(name string, line int) expr {
	if v := p.scope.find(name); v != nil {
		if v.kind == varConstant {
			return &constExpr{v.constant, line}
		}
		return &localExpr{v, line}
	}
	i, constant := p.upvalue(p.scope, name)
	if constant != nil {
		return &constExpr{constant.constant, line}
	}
	if i < 0 {
		return nil
	}
	return &upvalExpr{i, name, p.scope.fn.upvalues[i].kind, line}
}

// constantName returns the name of the constant variable an assignment target
// is, if it is one.
func (p *parser) constantName(name string) bool {
	if v := p.scope.find(name); v != nil {
		return v.kind != varPlain
	}
	i, constant := p.upvalue(p.scope, name)
	if i < 0 {
		return constant != nil
	}
	return p.scope.fn.upvalues[i].kind != varPlain
}
