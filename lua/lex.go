package lua

import (
	"fmt"
	"strings"
)

// token is a kind of token: a byte for single characters, else one of these.
type token int

const (
	tokAnd token = 256 + iota
	tokBreak
	tokDo
	tokElse
	tokElseif
	tokEnd
	tokFalse
	tokFor
	tokFunction
	tokGoto
	tokIf
	tokIn
	tokLocal
	tokNil
	tokNot
	tokOr
	tokRepeat
	tokReturn
	tokThen
	tokTrue
	tokUntil
	tokWhile
	tokIDiv
	tokConcat
	tokDots
	tokEq
	tokGe
	tokLe
	tokNe
	tokShl
	tokShr
	tokDoubleColon
	tokEOF
	tokNumber
	tokName
	tokString
)

var tokenNames = [...]string{
	"and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in",
	"local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
	"//", "..", "...", "==", ">=", "<=", "~=", "<<", ">>", "::", "<eof>", "<number>", "<name>", "<string>",
}

var keywords = func() map[string]token {
	m := map[string]token{}
	for t := tokAnd; t <= tokWhile; t++ {
		m[tokenNames[t-tokAnd]] = t
	}
	return m
}()

func (t token) String() string {
	switch {
	case t < 256 && t >= 32 && t < 127:
		return fmt.Sprintf("'%c'", rune(t))
	case t < 256:
		return fmt.Sprintf("'<\\%d>'", int(t))
	case t >= tokEOF:
		return tokenNames[t-tokAnd]
	}
	return "'" + tokenNames[t-tokAnd] + "'"
}

// lexeme is a token with what it carries.
type lexeme struct {
	token token
	line  int
	text  string // of names and strings
	value Value  // of numbers
	// from and to delimit the source text, for messages.
	from, to int
}

// lexer cuts source text into tokens.
type lexer struct {
	src   string
	chunk string // for messages
	pos   int
	line  int
	start int // of the current token
	buf   []byte
}

// syntaxError is a problem with the source; its text is the full message.
type syntaxError string

func (e syntaxError) Error() string { return string(e) }

func (l *lexer) errorAt(line int, msg, near string) parseFailure {
	if near != "" {
		msg += " near " + near
	}
	return parseFailure{syntaxError(fmt.Sprintf("%s:%d: %s", l.chunk, line, msg))}
}

// fail reports a malformed token, quoting what was read of it.
func (l *lexer) fail(msg string) parseFailure {
	return l.errorAt(l.line, msg, "'"+l.src[l.start:min(l.pos, len(l.src))]+"'")
}

func (l *lexer) peek(ahead int) int {
	if l.pos+ahead < len(l.src) {
		return int(l.src[l.pos+ahead])
	}
	return -1
}

// next returns the next token.
func (l *lexer) next() lexeme {
	l.skipBlank()
	l.start = l.pos
	lex := lexeme{line: l.line, from: l.pos}
	l.scan(&lex)
	lex.to = l.pos
	return lex
}

// skipBlank skips white space and comments.
func (l *lexer) skipBlank() {
	for l.pos < len(l.src) {
		switch c := l.src[l.pos]; {
		case c == '\n' || c == '\r':
			l.newline()
		case c == ' ' || c == '\t' || c == '\f' || c == '\v':
			l.pos++
		case c == '-' && l.peek(1) == '-':
			l.comment()
		default:
			return
		}
	}
}

// newline skips one line break of any convention.
func (l *lexer) newline() {
	c := l.src[l.pos]
	l.pos++
	if d := l.peek(0); (d == '\n' || d == '\r') && d != int(c) {
		l.pos++
	}
	l.line++
}

func (l *lexer) comment() {
	l.start = l.pos
	l.pos += 2
	if l.peek(0) == '[' {
		if level := l.longBracket(); level >= 0 {
			l.long(level, "comment")
			return
		}
	}
	if n := strings.IndexAny(l.src[l.pos:], "\n\r"); n >= 0 {
		l.pos += n
	} else {
		l.pos = len(l.src)
	}
}

// longBracket returns the level of the opening long bracket at pos, or -1.
func (l *lexer) longBracket() int {
	level := 0
	for l.peek(1+level) == '=' {
		level++
	}
	if l.peek(1+level) == '[' {
		return level
	}
	return -1
}

// long reads a long string or comment whose bracket opens at pos.
func (l *lexer) long(level int, what string) string {
	first := l.line
	l.pos += level + 2
	if c := l.peek(0); c == '\n' || c == '\r' {
		l.newline()
	}
	closing := "]" + strings.Repeat("=", level) + "]"
	l.buf = l.buf[:0]
	for {
		n := strings.IndexAny(l.src[l.pos:], "]\n\r")
		if n < 0 {
			l.pos = len(l.src)
			msg := fmt.Sprintf("unfinished long %s (starting at line %d)", what, first)
			panic(l.errorAt(l.line, msg, "<eof>"))
		}
		l.buf = append(l.buf, l.src[l.pos:l.pos+n]...)
		l.pos += n
		switch {
		case l.src[l.pos] != ']':
			l.newline()
			l.buf = append(l.buf, '\n')
		case strings.HasPrefix(l.src[l.pos:], closing):
			l.pos += len(closing)
			return string(l.buf)
		default:
			l.buf = append(l.buf, ']')
			l.pos++
		}
	}
}

// operators are the tokens of more than one character, longest first.
var operators = []struct {
	text  string
	token token
}{
	{"...", tokDots}, {"..", tokConcat}, {"==", tokEq}, {">=", tokGe}, {"<=", tokLe}, {"~=", tokNe},
	{"<<", tokShl}, {">>", tokShr}, {"//", tokIDiv}, {"::", tokDoubleColon},
}

func (l *lexer) scan(lex *lexeme) {
	if l.pos >= len(l.src) {
		lex.token = tokEOF
		return
	}
	c := l.src[l.pos]
	switch {
	case isNameStart(c):
		l.name(lex)
		return
	case isDecimalDigit(c), c == '.' && isDigitCode(l.peek(1)):
		l.number(lex)
		return
	case c == '"' || c == '\'':
		l.quoted(lex, c)
		return
	case c == '[':
		if level := l.longBracket(); level >= 0 {
			lex.token, lex.text = tokString, l.long(level, "string")
			return
		}
		if l.peek(1) == '=' {
			for l.pos++; l.peek(0) == '='; l.pos++ {
			}
			panic(l.fail("invalid long string delimiter"))
		}
	}
	l.operator(lex, c)
}

// operator reads an operator or another token that is not a word.
func (l *lexer) operator(lex *lexeme, c byte) {
	for _, o := range operators {
		if o.text[0] == c && strings.HasPrefix(l.src[l.pos:], o.text) {
			l.pos += len(o.text)
			lex.token = o.token
			return
		}
	}
	l.pos++
	lex.token = token(c)
}

func isNameStart(c byte) bool { return isAlpha(c) || c == '_' }
func isNameByte(c byte) bool  { return isAlpha(c) || isDecimalDigit(c) || c == '_' }
func isDigitCode(c int) bool  { return c >= '0' && c <= '9' }

func (l *lexer) name(lex *lexeme) {
	for l.pos++; l.pos < len(l.src) && isNameByte(l.src[l.pos]); l.pos++ {
	}
	text := l.src[l.start:l.pos]
	if t, ok := keywords[text]; ok {
		lex.token = t
		return
	}
	lex.token, lex.text = tokName, text
}

// number reads everything that looks like part of a numeral and then converts
// it.
func (l *lexer) number(lex *lexeme) {
	exponent := byte('e')
	if isHexPrefixed(l.src[l.pos:]) {
		exponent = 'p'
		l.pos += 2
	}
	l.skipNumeral(exponent)
	if l.pos < len(l.src) && isNameStart(l.src[l.pos]) {
		l.pos++ // a numeral touching a letter
	}
	v, ok := parseNumber(l.src[l.start:l.pos])
	if !ok {
		panic(l.fail("malformed number"))
	}
	lex.token, lex.value = tokNumber, v
}

// skipNumeral skips digits, points and exponents, whose letter is given in lower
// case.
func (l *lexer) skipNumeral(exponent byte) {
	for ; l.pos < len(l.src); l.pos++ {
		switch c := l.src[l.pos]; {
		case c|0x20 == exponent:
			if d := l.peek(1); d == '+' || d == '-' {
				l.pos++
			}
		case !isHexDigit(c) && c != '.':
			return
		}
	}
}

func (l *lexer) quoted(lex *lexeme, quote byte) {
	l.pos++
	l.buf = l.buf[:0]
	for {
		if l.pos >= len(l.src) {
			panic(l.errorAt(l.line, "unfinished string", "<eof>"))
		}
		switch c := l.src[l.pos]; c {
		case quote:
			l.pos++
			lex.token, lex.text = tokString, string(l.buf)
			return
		case '\n', '\r':
			panic(l.fail("unfinished string"))
		case '\\':
			l.escape()
		default:
			l.buf = append(l.buf, c)
			l.pos++
		}
	}
}

var simpleEscapes = map[byte]byte{
	'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', '\\': '\\', '"': '"', '\'': '\'',
}

// escape reads an escape sequence of a quoted string; pos is at the backslash.
func (l *lexer) escape() {
	l.pos++
	c := l.peek(0)
	if r, ok := simpleEscapes[byte(c)]; ok && c >= 0 {
		l.buf = append(l.buf, r)
		l.pos++
		return
	}
	switch {
	case c == '\n' || c == '\r':
		l.newline()
		l.buf = append(l.buf, '\n')
	case c == 'x':
		l.hexEscape()
	case c == 'z':
		l.pos++
		for c := l.peek(0); c >= 0 && isSpaceByte(byte(c)); c = l.peek(0) {
			if c == '\n' || c == '\r' {
				l.newline()
			} else {
				l.pos++
			}
		}
	case c == 'u':
		l.unicodeEscape()
	case isDigitCode(c):
		l.decimalEscape()
	case c < 0:
		// the caller reports the unfinished string
	default:
		panic(l.escapeError("invalid escape sequence"))
	}
}

// escapeError reports an escape sequence, quoting the string up to and with
// the offending character.
func (l *lexer) escapeError(msg string) parseFailure {
	if l.pos < len(l.src) {
		l.pos++
	}
	return l.fail(msg)
}

func (l *lexer) hexEscape() {
	l.pos++
	n := 0
	for range 2 {
		c := l.peek(0)
		if c < 0 || !isHexDigit(byte(c)) {
			panic(l.escapeError("hexadecimal digit expected"))
		}
		n = n*16 + hexDigit(byte(c))
		l.pos++
	}
	l.buf = append(l.buf, byte(n))
}

func (l *lexer) decimalEscape() {
	n := 0
	for i := 0; i < 3 && isDigitCode(l.peek(0)); i++ {
		n = n*10 + l.peek(0) - '0'
		l.pos++
	}
	if n > 255 {
		panic(l.escapeError("decimal escape too large"))
	}
	l.buf = append(l.buf, byte(n))
}

func (l *lexer) unicodeEscape() {
	l.pos++
	if l.peek(0) != '{' {
		panic(l.escapeError("missing '{'"))
	}
	l.pos++
	n := uint64(0)
	for i := 0; ; i++ {
		c := l.peek(0)
		if c < 0 || !isHexDigit(byte(c)) {
			if i == 0 {
				panic(l.escapeError("hexadecimal digit expected"))
			}
			break
		}
		if n > 0x7FFFFFFF>>4 {
			panic(l.escapeError("UTF-8 value too large"))
		}
		n = n*16 + uint64(hexDigit(byte(c)))
		l.pos++
	}
	if l.peek(0) != '}' {
		panic(l.escapeError("missing '}'"))
	}
	l.pos++
	l.buf = appendUTF8(l.buf, uint32(n))
}
