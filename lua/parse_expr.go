package lua

// constName is a compile-time constant met by its name, which only matters
// when the name is assigned to. Expressions unwrap it.
type constName struct {
	*constExpr
	name string
}

func (p *parser) exprList() ([]expr, error) {
	var list []expr
	for {
		e, err := p.expr()
		if err != nil {
			return nil, err
		}
		list = append(list, e)
		if ok, err := p.accept(','); err != nil {
			return nil, err
		} else if !ok {
			return list, nil
		}
	}
}

func (p *parser) expr() (expr, error) { return p.subexpr(0) }

// maxHeight bounds the trees that the compiler walks recursively. Parentheses
// and blocks are bounded by enter; this is for what the parser itself reads in
// a loop, such as a + a + a and a.a.a.
const maxHeight = 20000

// subexpr parses operators that bind tighter than limit.
func (p *parser) subexpr(limit int) (expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	outside := p.height
	p.height = 0
	left, err := p.unary()
	if err != nil {
		return nil, err
	}
	for height := p.height; ; {
		op, ok := binaryTokens[p.tok.token]
		if !ok || priorities[op][0] <= limit {
			p.height = max(outside, height)
			return left, nil
		}
		p.height = 0
		line := p.tok.line
		if err := p.advance(); err != nil {
			return nil, err
		}
		right, err := p.subexpr(priorities[op][1])
		if err != nil {
			return nil, err
		}
		if height = max(height, p.height) + 1; height > maxHeight {
			return nil, p.fail("expression has too many levels (limit is %d)", maxHeight)
		}
		left = foldBinary(&binExpr{op, left, right, line})
	}
}

func (p *parser) unary() (expr, error) {
	op, ok := unaryTokens[p.tok.token]
	if !ok {
		return p.simple()
	}
	line := p.tok.line
	if err := p.advance(); err != nil {
		return nil, err
	}
	e, err := p.subexpr(unaryPriority)
	if err != nil {
		return nil, err
	}
	return foldUnary(&unExpr{op, e, line}), nil
}

func (p *parser) simple() (expr, error) {
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
			return nil, p.fail("cannot use '...' outside a vararg function")
		}
		e = &varargExpr{line}
	case '{':
		return p.table()
	case tokFunction:
		if err := p.advance(); err != nil {
			return nil, err
		}
		fn, err := p.funcBody(false, line)
		return &funcExpr{fn}, err
	default:
		e, err := p.suffixed()
		if c, ok := e.(*constName); ok {
			return c.constExpr, err
		}
		return e, err
	}
	return e, p.advance()
}

func (p *parser) primary() (expr, error) {
	line := p.tok.line
	switch p.tok.token {
	case tokName:
		name := p.tok.text
		if err := p.advance(); err != nil {
			return nil, err
		}
		e, err := p.resolve(name, line)
		if c, ok := e.(*constExpr); ok {
			return &constName{c, name}, err
		}
		return e, err
	case '(':
		if err := p.advance(); err != nil {
			return nil, err
		}
		e, err := p.expr()
		if err != nil {
			return nil, err
		}
		if err := p.expectMatch(')', '(', line); err != nil {
			return nil, err
		}
		switch e.(type) {
		case *callExpr, *varargExpr, *localExpr, *upvalExpr, *indexExpr:
			return &parenExpr{e}, nil // one value, and no target
		}
		return e, nil
	}
	return nil, p.fail("unexpected symbol")
}

// suffixed parses a primary expression with its indices and calls.
func (p *parser) suffixed() (expr, error) {
	outside := p.height
	p.height = 0
	e, err := p.primary()
	for ; err == nil; p.height++ {
		if p.height > maxHeight {
			return nil, p.fail("expression has too many levels (limit is %d)", maxHeight)
		}
		switch p.tok.token {
		case '.':
			e, err = p.field(e)
		case '[':
			e, err = p.indexed(e)
		case ':':
			e, err = p.methodCall(e)
		case '(', tokString, '{':
			e, err = p.callArgs(unwrapConst(e), "")
		default:
			p.height = max(outside, p.height)
			return e, nil
		}
	}
	return nil, err
}

func unwrapConst(e expr) expr {
	if c, ok := e.(*constName); ok {
		return c.constExpr
	}
	return e
}

func (p *parser) field(obj expr) (expr, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	return &indexExpr{unwrapConst(obj), p.stringConst(name, p.line), p.line}, nil
}

func (p *parser) indexed(obj expr) (expr, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	key, err := p.expr()
	if err != nil {
		return nil, err
	}
	if err := p.expect(']'); err != nil {
		return nil, err
	}
	return &indexExpr{unwrapConst(obj), key, p.line}, nil
}

func (p *parser) methodCall(obj expr) (expr, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	return p.callArgs(unwrapConst(obj), name)
}

func (p *parser) callArgs(fn expr, method string) (expr, error) {
	line := p.tok.line
	c := &callExpr{fn: fn, method: method, line: line}
	switch p.tok.token {
	case tokString:
		c.args = []expr{p.stringConst(p.tok.text, line)}
		if err := p.advance(); err != nil {
			return nil, err
		}
	case '{':
		t, err := p.table()
		if err != nil {
			return nil, err
		}
		c.args = []expr{t}
	case '(':
		if err := p.advance(); err != nil {
			return nil, err
		}
		if p.tok.token != ')' {
			var err error
			if c.args, err = p.exprList(); err != nil {
				return nil, err
			}
		}
		if err := p.expectMatch(')', '(', line); err != nil {
			return nil, err
		}
	default:
		return nil, p.fail("function arguments expected")
	}
	c.argsEnd = p.line
	return c, nil
}

func (p *parser) table() (expr, error) {
	t := &tableExpr{line: p.tok.line}
	if err := p.advance(); err != nil {
		return nil, err
	}
	for p.tok.token != '}' {
		item, err := p.tableItem()
		if err != nil {
			return nil, err
		}
		t.items = append(t.items, item)
		if p.tok.token != ',' && p.tok.token != ';' {
			break
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	return t, p.expectMatch('}', '{', t.line)
}

func (p *parser) tableItem() (item tableItem, err error) {
	item.line = p.tok.line
	switch p.tok.token {
	case tokName:
		next, err := p.lookahead()
		if err != nil {
			return item, err
		}
		if next != '=' {
			break
		}
		item.key = p.stringConst(p.tok.text, p.tok.line)
		if err := p.advance(); err != nil {
			return item, err
		}
	case '[':
		if err = p.advance(); err != nil {
			return item, err
		}
		if item.key, err = p.expr(); err != nil {
			return item, err
		}
		if err = p.expect(']'); err != nil {
			return item, err
		}
	}
	if item.key != nil {
		if err = p.expect('='); err != nil {
			return item, err
		}
	}
	item.value, err = p.expr()
	item.line = p.line
	return item, err
}

// funcBody parses parameters and body of a function.
func (p *parser) funcBody(method bool, line int) (*function, error) {
	f := p.openFunction(line)
	defer p.closeFunction()
	b := p.openBlock()
	if method {
		f.fn.params = append(f.fn.params, &variable{name: "self"})
	}
	if err := p.parameters(f.fn); err != nil {
		return nil, err
	}
	if err := p.declare(f.fn.params...); err != nil {
		return nil, err
	}
	if err := p.statements(b); err != nil {
		return nil, err
	}
	p.closeBlock()
	f.fn.body, f.fn.endLine = b, p.tok.line
	return f.fn, p.expectMatch(tokEnd, tokFunction, line)
}

func (p *parser) parameters(fn *function) error {
	if err := p.expect('('); err != nil {
		return err
	}
	for p.tok.token != ')' {
		switch p.tok.token {
		case tokName:
			fn.params = append(fn.params, &variable{name: p.tok.text})
		case tokDots:
			fn.vararg = true
		default:
			return p.fail("<name> or '...' expected")
		}
		if err := p.advance(); err != nil {
			return err
		}
		if fn.vararg {
			break
		}
		if ok, err := p.accept(','); err != nil {
			return err
		} else if !ok {
			break
		} else if p.tok.token == ')' {
			return p.fail("<name> or '...' expected")
		}
	}
	return p.expect(')')
}
