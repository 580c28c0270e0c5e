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
func (p *parser) declare(vars ...*variable) error {
	p.scope.block.vars = append(p.scope.block.vars, vars...)
	p.scope.active += len(vars)
	if p.scope.active > maxLocals {
		return p.limitError("local variables", maxLocals)
	}
	return nil
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
func (p *parser) upvalue(f *funcScope, name string) (index int, constant *variable, err error) {
	for i := range f.fn.upvalues {
		if f.fn.upvalues[i].name == name {
			return i, nil, nil
		}
	}
	if f.parent == nil {
		return -1, nil, nil
	}
	ref := upvalueRef{name: name}
	if v := f.parent.find(name); v != nil {
		if v.kind == varConstant {
			return -1, v, nil
		}
		v.captured = true
		ref.local, ref.kind = v, v.kind
	} else {
		outer, constant, err := p.upvalue(f.parent, name)
		if err != nil || constant != nil || outer < 0 {
			return -1, constant, err
		}
		ref.outer, ref.kind = outer, f.parent.fn.upvalues[outer].kind
	}
	if len(f.fn.upvalues) >= maxUpvalues {
		return -1, nil, p.limitErrorIn(f, "upvalues", maxUpvalues)
	}
	f.fn.upvalues = append(f.fn.upvalues, ref)
	return len(f.fn.upvalues) - 1, nil, nil
}

// resolve returns the expression a name means.
func (p *parser) resolve(name string, line int) (expr, error) {
	v, err := p.variable(name, line)
	if err != nil || v != nil {
		return v, err
	}
	env, err := p.variable("_ENV", line)
	if err != nil {
		return nil, err
	}
	return &indexExpr{obj: env, key: p.stringConst(name, line), line: line}, nil
}

// variable returns the local or upvalue a name means, or nil.
func (p *parser) variable(name string, line int) (expr, error) {
	if v := p.scope.find(name); v != nil {
		if v.kind == varConstant {
			return &constExpr{v.constant, line}, nil
		}
		return &localExpr{v, line}, nil
	}
	i, constant, err := p.upvalue(p.scope, name)
	if err != nil {
		return nil, err
	}
	if constant != nil {
		return &constExpr{constant.constant, line}, nil
	}
	if i < 0 {
		return nil, nil
	}
	return &upvalExpr{i, name, p.scope.fn.upvalues[i].kind, line}, nil
}

// constantName returns the name of the constant variable an assignment target
// is, if it is one.
func (p *parser) constantName(name string) bool {
	if v := p.scope.find(name); v != nil {
		return v.kind != varPlain
	}
	i, constant, err := p.upvalue(p.scope, name)
	if err != nil || i < 0 {
		return constant != nil
	}
	return p.scope.fn.upvalues[i].kind != varPlain
}
