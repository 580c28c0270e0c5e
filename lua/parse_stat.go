package lua

// statement parses one statement; nil stands for an empty one.
func (p *parser) statement() stat {
	line := p.tok.line
	switch p.tok.token {
	case ';':
		p.advance()
		return nil
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
		p.advance()
		return &gotoStat{label: "break", line: line, isBreak: true}
	case tokGoto:
		p.advance()
		return &gotoStat{label: p.name(), line: line}
	}
	return p.expressionStatement()
}

func (p *parser) ifStatement(line int) stat {
	s := &ifStat{}
	for {
		s.lines = append(s.lines, p.tok.line)
		p.advance() // if or elseif
		cond := p.expr()
		p.expect(tokThen)
		s.thens = append(s.thens, p.line)
		s.conds = append(s.conds, cond)
		s.blocks = append(s.blocks, p.body())
		if p.tok.token != tokElseif {
			break
		}
	}
	if p.accept(tokElse) {
		s.blocks = append(s.blocks, p.body())
	}
	p.expectMatch(tokEnd, tokIf, line)
	return s
}

func (p *parser) whileStatement(line int) stat {
	p.advance()
	cond := p.expr()
	p.expect(tokDo)
	b := p.body()
	p.expectMatch(tokEnd, tokWhile, line)
	return &whileStat{cond, b, line}
}

func (p *parser) doStatement(line int) stat {
	p.advance()
	b := p.body()
	p.expectMatch(tokEnd, tokDo, line)
	return &doStat{b}
}

// repeatStatement keeps the scope of the body open for the condition.
func (p *parser) repeatStatement(line int) stat {
	p.advance()
	b := p.openBlock()
	p.statements(b)
	p.expectMatch(tokUntil, tokRepeat, line)
	cond := p.expr()
	p.closeBlock()
	return &repeatStat{b, cond, line}
}

func (p *parser) forStatement(line int) stat {
	p.advance()
	name := p.name()
	switch p.tok.token {
	case '=':
		return p.numericFor(name, line)
	case ',', tokIn:
		return p.genericFor(name, line)
	}
	panic(p.fail("'=' or 'in' expected"))
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

func (p *parser) numericFor(name string, line int) stat {
	s := &forStat{v: &variable{name: name}, line: line}
	p.advance()
	s.first = p.expr()
	p.expect(',')
	s.limit = p.expr()
	if p.accept(',') {
		s.step = p.expr()
	}
	s.body = p.loopBody(3, s.v)
	p.expectMatch(tokEnd, tokFor, line)
	return s
}

// loopBody parses do … (without end) of a for loop in which the loop's own
// variables are in scope.
func (p *parser) loopBody(hidden int, vars ...*variable) *block {
	p.expect(tokDo)
	p.openBlock()
	defer p.closeBlock()
	p.declare(p.hidden(hidden)...)
	return p.body(vars...)
}

func (p *parser) genericFor(first string, line int) stat {
	s := &forInStat{vars: []*variable{{name: first}}}
	for p.accept(',') {
		s.vars = append(s.vars, &variable{name: p.name()})
	}
	p.expect(tokIn)
	s.line = p.tok.line
	s.exprs = p.exprList()
	p.scope.fn.close = true // the loop may have a value to close
	s.body = p.loopBody(4, s.vars...)
	p.expectMatch(tokEnd, tokFor, line)
	return s
}

func (p *parser) functionStatement(line int) stat {
	p.advance()
	name := p.name()
	nameLine := p.line
	target := p.resolve(name, nameLine)
	method, plain := false, true
	for p.tok.token == '.' || p.tok.token == ':' {
		method, plain = p.tok.token == ':', false
		p.advance()
		key := p.name()
		target = &indexExpr{obj: target, key: p.stringConst(key, p.line), line: p.line}
		if method {
			break
		}
	}
	fn := p.funcBody(method, line)
	if plain && p.constantName(name) {
		panic(p.semanticError(p.tok.line, "attempt to assign to const variable '%s'", name))
	}
	return &funcStat{target, fn, line}
}

func (p *parser) localStatement(line int) stat {
	p.advance()
	if p.accept(tokFunction) {
		return p.localFunction(line)
	}
	s := &localStat{line: line}
	closing := false
	for {
		v := p.attributedName()
		if v.kind == varClose {
			if closing {
				panic(p.semanticError(p.tok.line, "multiple to-be-closed variables in local list"))
			}
			closing = true
		}
		s.vars = append(s.vars, v)
		if !p.accept(',') {
			break
		}
	}
	if p.accept('=') {
		s.exprs = p.exprList()
	}
	p.constantVariable(s)
	s.end = p.line
	p.declare(s.vars...)
	return s
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

func (p *parser) attributedName() *variable {
	v := &variable{name: p.name()}
	if !p.accept('<') {
		return v
	}
	attrib := p.name()
	p.expect('>')
	switch attrib {
	case "const":
		v.kind = varConst
	case "close":
		v.kind = varClose
	default:
		panic(p.semanticError(p.tok.line, "unknown attribute '%s'", attrib))
	}
	return v
}

func (p *parser) localFunction(line int) stat {
	v := &variable{name: p.name()}
	p.declare(v)
	return &localFuncStat{v, p.funcBody(false, p.line), line}
}

func (p *parser) label(line int) stat {
	p.advance()
	name := p.name()
	p.expect(tokDoubleColon)
	return &labelStat{name: name, line: line}
}

func (p *parser) returnStatement() stat {
	p.advance()
	s := &returnStat{line: p.line}
	if !p.blockEnds() && p.tok.token != ';' {
		s.exprs = p.exprList()
		s.line = p.line
	}
	p.accept(';')
	return s // the parser of the block reports what follows
}

// expressionStatement parses a call or an assignment.
func (p *parser) expressionStatement() stat {
	e := p.suffixed()
	if p.tok.token != '=' && p.tok.token != ',' {
		call, ok := e.(*callExpr)
		if !ok {
			panic(p.fail("syntax error"))
		}
		return &callStat{call}
	}
	s := &assignStat{targets: []expr{e}}
	p.checkTarget(e)
	for p.tok.token == ',' {
		p.advance()
		e = p.suffixed()
		p.checkTarget(e)
		s.targets = append(s.targets, e)
		if len(s.targets)+p.depth > maxNesting {
			panic(p.fail("C stack overflow"))
		}
	}
	p.expect('=')
	s.exprs = p.exprList()
	s.end = p.line
	return s
}

// checkTarget reports what cannot be assigned to.
func (p *parser) checkTarget(e expr) {
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
		panic(p.fail("syntax error"))
	}
	if name != "" {
		panic(p.semanticError(p.tok.line, "attempt to assign to const variable '%s'", name))
	}
}
