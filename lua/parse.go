package lua

import "fmt"

// parser builds the syntax tree of a chunk.
type parser struct {
	lex      lexer
	tok      lexeme // current
	ahead    lexeme // the one after it, when hasAhead
	line     int    // of the last token consumed
	scope    *funcScope
	depth    int
	height   int // of the tallest expression since it was last set to 0
	state    *State
	strs     map[string]*Str
	hasAhead bool
}

// maxNesting bounds how deep constructs nest, since parser and compiler recurse.
const maxNesting = 200

// parse reads a whole chunk.
func (s *State) parse(src, chunk string) (*function, error) {
	p := &parser{state: s, strs: map[string]*Str{}}
	p.lex = lexer{src: src, chunk: chunkID(chunk), line: 1}
	f := p.openFunction(0)
	f.fn.vararg = true
	f.fn.upvalues = []upvalueRef{{name: "_ENV"}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	body, err := p.chunk()
	if err != nil {
		return nil, err
	}
	if p.tok.token != tokEOF {
		return nil, p.expected(tokEOF)
	}
	f.fn.body, f.fn.endLine = body, p.line
	return f.fn, nil
}

func (p *parser) chunk() (*block, error) {
	b := p.openBlock()
	err := p.statements(b)
	p.closeBlock()
	return b, err
}

// tokenCost is about what the syntax tree takes for each token.
const tokenCost = 100

func (p *parser) advance() error {
	p.line = p.tok.line
	if p.hasAhead {
		p.tok, p.hasAhead = p.ahead, false
		return nil
	}
	var err error
	p.tok, err = p.lex.next()
	p.state.account.fuel--
	if err == nil && p.state.account.fuel < 0 {
		err = p.state.refuel()
	}
	if err == nil {
		err = p.state.hold(tokenCost)
	}
	return err
}

func (p *parser) lookahead() (token, error) {
	if !p.hasAhead {
		var err error
		if p.ahead, err = p.lex.next(); err != nil {
			return 0, err
		}
		p.hasAhead = true
	}
	return p.ahead.token, nil
}

// enter guards against constructs that nest too deeply.
func (p *parser) enter() error {
	p.depth++
	if p.depth+p.state.depth > maxNesting {
		return p.lex.errorAt(p.tok.line, "C stack overflow", p.near())
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

// near returns the current token as messages quote it.
func (p *parser) near() string {
	switch p.tok.token {
	case tokName, tokString, tokNumber:
		return "'" + p.lex.src[p.tok.from:p.tok.to] + "'"
	}
	return p.tok.token.String()
}

func (p *parser) fail(format string, args ...any) error {
	return p.lex.errorAt(p.tok.line, fmt.Sprintf(format, args...), p.near())
}

// semanticError has no token to blame.
func (p *parser) semanticError(line int, format string, args ...any) error {
	return p.lex.errorAt(line, fmt.Sprintf(format, args...), "")
}

func (p *parser) expected(t token) error { return p.fail("%s expected", t) }

func (p *parser) limitError(what string, limit int) error {
	return p.limitErrorIn(p.scope, what, limit)
}

func (p *parser) limitErrorIn(f *funcScope, what string, limit int) error {
	where := "main function"
	if f.fn.line > 0 {
		where = fmt.Sprintf("function at line %d", f.fn.line)
	}
	return p.fail("too many %s (limit is %d) in %s", what, limit, where)
}

func (p *parser) accept(t token) (bool, error) {
	if p.tok.token != t {
		return false, nil
	}
	return true, p.advance()
}

func (p *parser) expect(t token) error {
	if p.tok.token != t {
		return p.expected(t)
	}
	return p.advance()
}

// expectMatch expects the token that closes what opened at a line.
func (p *parser) expectMatch(what, opened token, line int) error {
	if p.tok.token == what {
		return p.advance()
	}
	if line == p.tok.line {
		return p.expected(what)
	}
	return p.fail("%s expected (to close %s at line %d)", what, opened, line)
}

func (p *parser) name() (string, error) {
	if p.tok.token != tokName {
		return "", p.expected(tokName)
	}
	name := p.tok.text
	return name, p.advance()
}

// str returns the constant for a text, one object per text.
func (p *parser) str(text string) Value {
	o := p.strs[text]
	if o == nil {
		o = p.state.intern(text)
		p.strs[text] = o
	}
	return o.value()
}

func (p *parser) stringConst(text string, line int) *constExpr {
	return &constExpr{p.str(text), line}
}

// blockEnds reports whether the current token ends a block.
func (p *parser) blockEnds() bool {
	switch p.tok.token {
	case tokElse, tokElseif, tokEnd, tokEOF, tokUntil:
		return true
	}
	return false
}

// statements parses up to the end of a block whose scope is open.
func (p *parser) statements(b *block) error {
	for !p.blockEnds() {
		isReturn := p.tok.token == tokReturn
		if err := p.enter(); err != nil {
			return err
		}
		s, err := p.statement()
		if err != nil {
			return err
		}
		p.leave()
		if s != nil {
			b.stats = append(b.stats, s)
		}
		if isReturn {
			break
		}
	}
	for i := len(b.stats) - 1; i >= 0 && p.tok.token != tokUntil; i-- {
		l, ok := b.stats[i].(*labelStat)
		if !ok {
			break
		}
		l.last = true
	}
	return nil
}

// body parses the block of a compound statement, in a scope of its own.
func (p *parser) body(vars ...*variable) (*block, error) {
	b := p.openBlock()
	err := p.declare(vars...)
	if err == nil {
		err = p.statements(b)
	}
	p.closeBlock()
	return b, err
}
