package lua

import "fmt"

// readProtos reads compiled functions and verifies them.
func (r *restorer) readProtos() {
	n := r.count(14)
	for range n {
		p := r.readProto()
		if r.failure != nil {
			return
		}
		if err := p.verifyCode(); err != nil {
			r.corrupt("%v", err)
			return
		}
		r.protos = append(r.protos, p)
	}
}

func (r *restorer) readProto() *Proto {
	p := &Proto{source: r.text()}
	p.line, p.lastLine = r.small(), r.small()
	p.params, p.vararg, p.maxStack = r.byte(), r.bool(), r.byte()
	hints := r.uint()
	n := r.count(5)
	r.charge(200 + n*16)
	if hints > uint64(n)+1 {
		r.fail(errReference)
	}
	if r.failure != nil {
		return nil
	}
	p.hints = make([]uint32, hints)
	p.code = make([]instruction, n)
	for i := range p.code {
		p.code[i] = r.readInstruction()
	}
	for range r.count(1) {
		p.constants = append(p.constants, r.literal())
	}
	for range r.count(4) {
		p.upvalues = append(p.upvalues, upvalueDesc{name: r.text(), inStack: r.bool(), index: r.byte(), kind: varKind(r.byte())})
	}
	r.readInner(p)
	line := int32(0)
	for range r.count(1) {
		line += r.small()
		p.lines = append(p.lines, line)
	}
	for range r.count(4) {
		p.locals = append(p.locals, localVar{name: r.text(), start: r.small(), end: r.small(), reg: r.byte()})
	}
	return p
}

func (r *restorer) readInstruction() instruction {
	op, a := r.byte(), r.byte()
	b, c, d := r.below(1<<16), r.below(1<<16), r.below(1<<16)
	return abc(opcode(op), int(a), b, c) | instruction(d)<<48
}

// literal reads a constant of a function.
func (r *restorer) literal() Value {
	v := r.value()
	switch v.Kind() {
	case KindNil, KindBool, KindInt, KindFloat:
		return v
	case KindString:
		return r.state.intern(v.str().s).value()
	}
	r.corrupt("code has an impossible constant")
	return Nil
}

// readInner reads which functions are inside p. Every one is inside one other
// at most, and not deeper than the compiler nests them.
func (r *restorer) readInner(p *Proto) {
	depth := 0
	for range r.count(1) {
		i := r.below(len(r.protos))
		if r.failure != nil {
			return
		}
		if r.inner[i] {
			r.corrupt("a function is inside two others")
			return
		}
		r.inner[i] = true
		depth = max(depth, r.nested[i]+1)
		p.protos = append(p.protos, r.protos[i])
	}
	if depth > maxNesting {
		r.corrupt("functions are nested too deep")
	}
	r.nested = append(r.nested, depth)
	r.inner = append(r.inner, false)
}

// missing reports a library that the state needs.
func (r *restorer) missing(name string) {
	r.fail(fmt.Errorf("the state uses the library %q, which was not given", name))
}

// hostValue makes the Go value of a userdata.
func (r *restorer) hostValue(kind string, data []byte) (any, error) {
	if maker := r.opts.Userdata[kind]; maker != nil {
		value, err := maker(data)
		if err != nil {
			return nil, fmt.Errorf("userdata of kind %q: %w", kind, err)
		}
		return value, nil
	}
	for _, l := range r.opts.Libraries {
		if maker := l.companions().userdata[kind]; maker != nil {
			return maker(r.state, data)
		}
	}
	return nil, fmt.Errorf("the state has userdata of kind %q, which nothing given can make", kind)
}
