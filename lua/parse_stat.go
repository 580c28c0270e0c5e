package lua

// statement parses one statement; nil stands for an empty one.
func (p *parser) statement() (stat, error) {
	line := p.tok.line
	switch p.tok.token {
	case ';':
		return nil, p.advance()
	case tokIf:
		return p.ifStatement(line)
	case tokWhile:
		return p.whileStatement(line)
	case tokDo:
		return p.doStatement(line)
	case tokFor:
		return p.forStatement(line)
	case tokRepeat:
		return p.repeatStatement(line)
	case tokFunction:
		return p.functionStatement(line)
	case tokLocal:
		return p.localStatement(line)
	case tokDoubleColon:
		return p.label(line)
	case tokReturn:
		return p.returnStatement()
	case tokBreak:
		return &gotoStat{label: "break", line: line, isBreak: true}, p.advance()
	case tokGoto:
		if err := p.advance(); err != nil {
			return nil, err
		}
		name, err := p.name()
		return &gotoStat{label: name, line: line}, err
	}
	return p.expressionStatement()
}

func (p *parser) ifStatement(line int) (stat, error) {
	s := &ifStat{}
	for {
		s.lines = append(s.lines, p.tok.line)
		if err := p.advance(); err != nil { // if or elseif
			return nil, err
		}
		cond, err := p.expr()
		if err != nil {
			return nil, err
		}
		if err := p.expect(tokThen); err != nil {
			return nil, err
		}
		s.thens = append(s.thens, p.line)
		b, err := p.body()
		if err != nil {
			return nil, err
		}
		s.conds = append(s.conds, cond)
		s.blocks = append(s.blocks, b)
		if p.tok.token != tokElseif {
			break
		}
	}
	if ok, err := p.accept(tokElse); err != nil {
		return nil, err
	} else if ok {
		b, err := p.body()
		if err != nil {
			return nil, err
		}
		s.blocks = append(s.blocks, b)
	}
	return s, p.expectMatch(tokEnd, tokIf, line)
}

func (p *parser) whileStatement(line int) (stat, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	cond, err := p.expr()
	if err != nil {
		return nil, err
	}
	if err := p.expect(tokDo); err != nil {
		return nil, err
	}
	b, err := p.body()
	if err != nil {
		return nil, err
	}
	return &whileStat{cond, b, line}, p.expectMatch(tokEnd, tokWhile, line)
}

func (p *parser) doStatement(line int) (stat, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	b, err := p.body()
	if err != nil {
		return nil, err
	}
	return &doStat{b}, p.expectMatch(tokEnd, tokDo, line)
}

// repeatStatement keeps the scope of the body open for the condition.
func (p *parser) repeatStatement(line int) (stat, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	b := p.openBlock()
	if err := p.statements(b); err != nil {
		return nil, err
	}
	if err := p.expectMatch(tokUntil, tokRepeat, line); err != nil {
		return nil, err
	}
	cond, err := p.expr()
	p.closeBlock()
	return &repeatStat{b, cond, line}, err
}

func (p *parser) forStatement(line int) (stat, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	switch p.tok.token {
	case '=':
		return p.numericFor(name, line)
	case ',', tokIn:
		return p.genericFor(name, line)
	}
	return nil, p.fail("'=' or 'in' expected")
}

// hidden are the variables loops keep for themselves. They count as local
// variables while the body is parsed.
func (p *parser) hidden(n int) []*variable {
	vars := make([]*variable, n)
	for i := range vars {
		vars[i] = &variable{name: "(for state)"}
	}
	return vars
}

func (p *parser) numericFor(name string, line int) (stat, error) {
	s := &forStat{v: &variable{name: name}, line: line}
	if err := p.advance(); err != nil {
		return nil, err
	}
	var err error
	if s.first, err = p.expr(); err != nil {
		return nil, err
	}
	if err := p.expect(','); err != nil {
		return nil, err
	}
	if s.limit, err = p.expr(); err != nil {
		return nil, err
	}
	if ok, err := p.accept(','); err != nil {
		return nil, err
	} else if ok {
		if s.step, err = p.expr(); err != nil {
			return nil, err
		}
	}
	s.body, err = p.loopBody(3, s.v)
	if err != nil {
		return nil, err
	}
	return s, p.expectMatch(tokEnd, tokFor, line)
}

// loopBody parses do … (without end) of a for loop in which the loop's own
// variables are in scope.
func (p *parser) loopBody(hidden int, vars ...*variable) (*block, error) {
	if err := p.expect(tokDo); err != nil {
		return nil, err
	}
	p.openBlock()
	defer p.closeBlock()
	if err := p.declare(p.hidden(hidden)...); err != nil {
		return nil, err
	}
	return p.body(vars...)
}

func (p *parser) genericFor(first string, line int) (stat, error) {
	s := &forInStat{vars: []*variable{{name: first}}}
	for {
		ok, err := p.accept(',')
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		name, err := p.name()
		if err != nil {
			return nil, err
		}
		s.vars = append(s.vars, &variable{name: name})
	}
	if err := p.expect(tokIn); err != nil {
		return nil, err
	}
	s.line = p.tok.line
	var err error
	if s.exprs, err = p.exprList(); err != nil {
		return nil, err
	}
	p.scope.fn.close = true // the loop may have a value to close
	if s.body, err = p.loopBody(4, s.vars...); err != nil {
		return nil, err
	}
	return s, p.expectMatch(tokEnd, tokFor, line)
}

func (p *parser) functionStatement(line int) (stat, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	nameLine := p.line
	target, err := p.resolve(name, nameLine)
	if err != nil {
		return nil, err
	}
	method, plain := false, true
	for p.tok.token == '.' || p.tok.token == ':' {
		method, plain = p.tok.token == ':', false
		if err := p.advance(); err != nil {
			return nil, err
		}
		key, err := p.name()
		if err != nil {
			return nil, err
		}
		target = &indexExpr{obj: target, key: p.stringConst(key, p.line), line: p.line}
		if method {
			break
		}
	}
	fn, err := p.funcBody(method, line)
	if err != nil {
		return nil, err
	}
	if plain && p.constantName(name) {
		return nil, p.semanticError(p.tok.line, "attempt to assign to const variable '%s'", name)
	}
	return &funcStat{target, fn, line}, nil
}

func (p *parser) localStatement(line int) (stat, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	if ok, err := p.accept(tokFunction); err != nil {
		return nil, err
	} else if ok {
		return p.localFunction(line)
	}
	s := &localStat{line: line}
	closing := false
	for {
		v, err := p.attributedName()
		if err != nil {
			return nil, err
		}
		if v.kind == varClose {
			if closing {
				return nil, p.semanticError(p.tok.line, "multiple to-be-closed variables in local list")
			}
			closing = true
		}
		s.vars = append(s.vars, v)
		if ok, err := p.accept(','); err != nil {
			return nil, err
		} else if !ok {
			break
		}
	}
	if ok, err := p.accept('='); err != nil {
		return nil, err
	} else if ok {
		if s.exprs, err = p.exprList(); err != nil {
			return nil, err
		}
	}
	p.constantVariable(s)
	s.end = p.line
	return s, p.declare(s.vars...)
}

// constantVariable makes the last variable a compile-time constant if it can
// be one.
func (p *parser) constantVariable(s *localStat) {
	last := s.vars[len(s.vars)-1]
	if last.kind != varConst || len(s.vars) != len(s.exprs) {
		return
	}
	if c, ok := s.exprs[len(s.exprs)-1].(*constExpr); ok {
		last.kind, last.constant = varConstant, c.value
	}
}

func (p *parser) attributedName() (*variable, error) {
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	v := &variable{name: name}
	if ok, err := p.accept('<'); err != nil || !ok {
		return v, err
	}
	attrib, err := p.name()
	if err != nil {
		return nil, err
	}
	if err := p.expect('>'); err != nil {
		return nil, err
	}
	switch attrib {
	case "const":
		v.kind = varConst
	case "close":
		v.kind = varClose
	default:
		return nil, p.semanticError(p.tok.line, "unknown attribute '%s'", attrib)
	}
	return v, nil
}

func (p *parser) localFunction(line int) (stat, error) {
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	v := &variable{name: name}
	if err := p.declare(v); err != nil {
		return nil, err
	}
	fn, err := p.funcBody(false, p.line)
	return &localFuncStat{v, fn, line}, err
}

func (p *parser) label(line int) (stat, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	return &labelStat{name: name, line: line}, p.expect(tokDoubleColon)
}

func (p *parser) returnStatement() (stat, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	s := &returnStat{line: p.line}
	if !p.blockEnds() && p.tok.token != ';' {
		var err error
		if s.exprs, err = p.exprList(); err != nil {
			return nil, err
		}
		s.line = p.line
	}
	_, err := p.accept(';')
	return s, err // the parser of the block reports what follows
}

// expressionStatement parses a call or an assignment.
func (p *parser) expressionStatement() (stat, error) {
	e, err := p.suffixed()
	if err != nil {
		return nil, err
	}
	if p.tok.token != '=' && p.tok.token != ',' {
		call, ok := e.(*callExpr)
		if !ok {
			return nil, p.fail("syntax error")
		}
		return &callStat{call}, nil
	}
	s := &assignStat{targets: []expr{e}}
	if err := p.checkTarget(e); err != nil {
		return nil, err
	}
	for p.tok.token == ',' {
		if err := p.advance(); err != nil {
			return nil, err
		}
		if e, err = p.suffixed(); err != nil {
			return nil, err
		}
		if err := p.checkTarget(e); err != nil {
			return nil, err
		}
		s.targets = append(s.targets, e)
		if len(s.targets)+p.depth > maxNesting {
			return nil, p.fail("C stack overflow")
		}
	}
	if err := p.expect('='); err != nil {
		return nil, err
	}
	if s.exprs, err = p.exprList(); err != nil {
		return nil, err
	}
	s.end = p.line
	return s, nil
}

// checkTarget reports what cannot be assigned to.
func (p *parser) checkTarget(e expr) error {
	name := ""
	switch e := e.(type) {
	case *localExpr:
		if e.v.kind != varPlain {
			name = e.v.name
		}
	case *upvalExpr:
		if e.kind != varPlain {
			name = e.name
		}
	case *indexExpr:
	case *constName:
		name = e.name
	default:
		return p.fail("syntax error")
	}
	if name != "" {
		return p.semanticError(p.tok.line, "attempt to assign to const variable '%s'", name)
	}
	return nil
}
