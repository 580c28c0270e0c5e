package lua

// constName is a compile-time constant met by its name, which only matters
// when the name is assigned to. Expressions unwrap it.
type constName struct {
	*constExpr
	name string
}

func (p *parser) exprList() []expr {
	var list []expr
	for {
		list = append(list, p.expr())
		if !p.accept(',') {
			return list
		}
	}
}

func (p *parser) expr() expr { return p.subexpr(0) }

// maxHeight bounds the trees that the compiler walks recursively. Parentheses
// and blocks are bounded by enter; this is for what the parser itself reads in
// a loop, such as a + a + a and a.a.a.
const maxHeight = 20000

// subexpr parses operators that bind tighter than limit.
func (p *parser) subexpr(limit int) expr {
	p.enter()
	defer p.leave()
	outside := p.height
	p.height = 0
	left := p.unary()
	for height := p.height; ; {
		op, ok := binaryTokens[p.tok.token]
		if !ok || priorities[op][0] <= limit {
			p.height = max(outside, height)
			return left
		}
		p.height = 0
		line := p.tok.line
		p.advance()
		right := p.subexpr(priorities[op][1])
		if height = max(height, p.height) + 1; height > maxHeight {
			panic(p.fail("expression has too many levels (limit is %d)", maxHeight))
		}
		left = foldBinary(&binExpr{op, left, right, line})
	}
}

func (p *parser) unary() expr {
	op, ok := unaryTokens[p.tok.token]
	if !ok {
		return p.simple()
	}
	line := p.tok.line
	p.advance()
	return foldUnary(&unExpr{op, p.subexpr(unaryPriority), line})
}

func (p *parser) simple() expr {
	line := p.tok.line
	var e expr
	switch p.tok.token {
	case tokNumber:
		e = &constExpr{p.tok.value, line}
	case tokString:
		e = p.stringConst(p.tok.text, line)
	case tokNil:
		e = &constExpr{Nil, line}
	case tokTrue:
		e = &constExpr{Bool(true), line}
	case tokFalse:
		e = &constExpr{Bool(false), line}
	case tokDots:
		if !p.scope.fn.vararg {
			panic(p.fail("cannot use '...' outside a vararg function"))
		}
		e = &varargExpr{line}
	case '{':
		return p.table()
	case tokFunction:
		p.advance()
		return &funcExpr{p.funcBody(false, line)}
	default:
		return unwrapConst(p.suffixed())
	}
	p.advance()
	return e
}

func (p *parser) primary() expr {
	line := p.tok.line
	switch p.tok.token {
	case tokName:
		name := p.tok.text
		p.advance()
		e := p.resolve(name, line)
		if c, ok := e.(*constExpr); ok {
			return &constName{c, name}
		}
		return e
	case '(':
		p.advance()
		e := p.expr()
		p.expectMatch(')', '(', line)
		switch e.(type) {
		case *callExpr, *varargExpr, *localExpr, *upvalExpr, *indexExpr:
			return &parenExpr{e} // one value, and no target
		}
		return e
	}
	panic(p.fail("unexpected symbol"))
}

// suffixed parses a primary expression with its indices and calls.
func (p *parser) suffixed() expr {
	outside := p.height
	p.height = 0
	for e := p.primary(); ; p.height++ {
		if p.height > maxHeight {
			panic(p.fail("expression has too many levels (limit is %d)", maxHeight))
		}
		switch p.tok.token {
		case '.':
			e = p.field(e)
		case '[':
			e = p.indexed(e)
		case ':':
			e = p.methodCall(e)
		case '(', tokString, '{':
			e = p.callArgs(unwrapConst(e), "")
		default:
			p.height = max(outside, p.height)
			return e
		}
	}
}

func unwrapConst(e expr) expr {
	if c, ok := e.(*constName); ok {
		return c.constExpr
	}
	return e
}

func (p *parser) field(obj expr) expr {
	p.advance()
	name := p.name()
	return &indexExpr{unwrapConst(obj), p.stringConst(name, p.line), p.line}
}

func (p *parser) indexed(obj expr) expr {
	p.advance()
	key := p.expr()
	p.expect(']')
	return &indexExpr{unwrapConst(obj), key, p.line}
}

func (p *parser) methodCall(obj expr) expr {
	p.advance()
	return p.callArgs(unwrapConst(obj), p.name())
}

func (p *parser) callArgs(fn expr, method string) expr {
	line := p.tok.line
	c := &callExpr{fn: fn, method: method, line: line}
	switch p.tok.token {
	case tokString:
		c.args = []expr{p.stringConst(p.tok.text, line)}
		p.advance()
	case '{':
		c.args = []expr{p.table()}
	case '(':
		p.advance()
		if p.tok.token != ')' {
			c.args = p.exprList()
		}
		p.expectMatch(')', '(', line)
	default:
		panic(p.fail("function arguments expected"))
	}
	c.argsEnd = p.line
	return c
}

func (p *parser) table() expr {
	t := &tableExpr{line: p.tok.line}
	p.advance()
	for p.tok.token != '}' {
		t.items = append(t.items, p.tableItem())
		if p.tok.token != ',' && p.tok.token != ';' {
			break
		}
		p.advance()
	}
	p.expectMatch('}', '{', t.line)
	return t
}

func (p *parser) tableItem() (item tableItem) {
	item.line = p.tok.line
	switch p.tok.token {
	case tokName:
		if p.lookahead() != '=' {
			break
		}
		item.key = p.stringConst(p.tok.text, p.tok.line)
		p.advance()
	case '[':
		p.advance()
		item.key = p.expr()
		p.expect(']')
	}
	if item.key != nil {
		p.expect('=')
	}
	item.value = p.expr()
	item.line = p.line
	return item
}

// funcBody parses parameters and body of a function.
func (p *parser) funcBody(method bool, line int) *function {
	f := p.openFunction(line)
	defer p.closeFunction()
	b := p.openBlock()
	if method {
		f.fn.params = append(f.fn.params, &variable{name: "self"})
	}
	p.parameters(f.fn)
	p.declare(f.fn.params...)
	p.statements(b)
	p.closeBlock()
	f.fn.body, f.fn.endLine = b, p.tok.line
	p.expectMatch(tokEnd, tokFunction, line)
	return f.fn
}

func (p *parser) parameters(fn *function) {
	p.expect('(')
	for p.tok.token != ')' {
		switch p.tok.token {
		case tokName:
			fn.params = append(fn.params, &variable{name: p.tok.text})
		case tokDots:
			fn.vararg = true
		default:
			panic(p.fail("<name> or '...' expected"))
		}
		p.advance()
		if fn.vararg || !p.accept(',') {
			break
		}
		if p.tok.token == ')' {
			panic(p.fail("<name> or '...' expected"))
		}
	}
	p.expect(')')
}
