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

// parseFailure is what parser and lexer panic with: a syntaxError, or that a budget is
// used up.
type parseFailure struct{ error }

// parse reads a whole chunk.
func (s *State) parse(src, chunk string) (fn *function, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case parseFailure:
			fn, err = nil, r.error
		default:
			panic(r)
		}
	}()
	p := &parser{state: s, strs: map[string]*Str{}}
	p.lex = lexer{src: src, chunk: chunkID(chunk), line: 1}
	f := p.openFunction(0)
	f.fn.vararg = true
	f.fn.upvalues = []upvalueRef{{name: "_ENV"}}
	p.advance()
	body := p.body()
	if p.tok.token != tokEOF {
		panic(p.expected(tokEOF))
	}
	f.fn.body, f.fn.endLine = body, p.line
	return f.fn, nil
}

// tokenCost is about what the syntax tree takes for each token.
const tokenCost = 100

func (p *parser) advance() {
	p.line = p.tok.line
	if p.hasAhead {
		p.tok, p.hasAhead = p.ahead, false
		return
	}
	p.tok = p.lex.next()
	p.state.account.fuel--
	if p.state.account.fuel < 0 {
		if err := p.state.refuel(); err != nil {
			panic(parseFailure{err})
		}
	}
	if err := p.state.hold(tokenCost); err != nil {
		panic(parseFailure{err})
	}
}

func (p *parser) lookahead() token {
	if !p.hasAhead {
		p.ahead = p.lex.next()
		p.hasAhead = true
	}
	return p.ahead.token
}

// enter guards against constructs that nest too deeply.
func (p *parser) enter() {
	p.depth++
	if p.depth+p.state.depth > maxNesting {
		panic(p.lex.errorAt(p.tok.line, "C stack overflow", p.near()))
	}
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

func (p *parser) fail(format string, args ...any) parseFailure {
	return p.lex.errorAt(p.tok.line, fmt.Sprintf(format, args...), p.near())
}

// semanticError has no token to blame.
func (p *parser) semanticError(line int, format string, args ...any) parseFailure {
	return p.lex.errorAt(line, fmt.Sprintf(format, args...), "")
}

func (p *parser) expected(t token) parseFailure { return p.fail("%s expected", t) }

func (p *parser) limitError(f *funcScope, what string, limit int) parseFailure {
	where := "main function"
	if f.fn.line > 0 {
		where = fmt.Sprintf("function at line %d", f.fn.line)
	}
	return p.fail("too many %s (limit is %d) in %s", what, limit, where)
}

func (p *parser) accept(t token) bool {
	if p.tok.token != t {
		return false
	}
	p.advance()
	return true
}

func (p *parser) expect(t token) {
	if !p.accept(t) {
		panic(p.expected(t))
	}
}

// expectMatch expects the token that closes what opened at a line.
func (p *parser) expectMatch(what, opened token, line int) {
	if p.tok.token != what && line != p.tok.line {
		panic(p.fail("%s expected (to close %s at line %d)", what, opened, line))
	}
	p.expect(what)
}

func (p *parser) name() string {
	name := p.tok.text
	p.expect(tokName)
	return name
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
func (p *parser) statements(b *block) {
	for !p.blockEnds() {
		isReturn := p.tok.token == tokReturn
		p.enter()
		s := p.statement()
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
}

// body parses the block of a compound statement, in a scope of its own.
func (p *parser) body(vars ...*variable) *block {
	b := p.openBlock()
	p.declare(vars...)
	p.statements(b)
	p.closeBlock()
	return b
}
