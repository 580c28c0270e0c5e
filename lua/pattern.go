package lua

import (
	"strconv"
	"strings"
)

// Limits of patterns, those of the reference implementation.
const (
	maxCaptures     = 32
	maxPatternDepth = 200
)

// A pattern is a compiled Lua pattern. Patterns have no alternatives, so the
// captures that are open or closed at any point are known before any matching
// happens, and so is every mistake. The reference complains about a mistake
// only when a match gets that far; a mistake is therefore compiled to an item
// that fails with the message, not reported at once.
//
// Patterns are immutable and may be shared.
type pattern struct {
	items    []patternItem
	captures int               // number of "(" in the pattern
	open     [maxCaptures]bool // captures never closed
	prefix   string            // literal text every match starts with
}

type patternOp uint8

const (
	patChar     patternOp = iota // one given byte
	patAny                       // any byte
	patSet                       // a byte of a set
	patLiteral                   // given bytes
	patOpen                      // start of a capture
	patClose                     // end of a capture
	patPosition                  // position capture
	patEnd                       // end of the subject
	patBalance                   // %bxy
	patFrontier                  // %f[set]
	patBackref                   // %1
	patMistake                   // fails with a message
)

// patternItem is one step of a match. The first three ops may carry a suffix
// ('*', '+', '-' or '?').
type patternItem struct {
	op      patternOp
	suffix  byte
	char    byte // patChar; opening byte of patBalance
	closing byte // closing byte of patBalance
	capture uint8
	set     *charSet
	text    string // patLiteral; message of patMistake
}

// patternItemSize is what an item costs in memory, for accounting.
const patternItemSize = 40

// patternMistake is an error in the pattern itself.
type patternMistake string

func (m patternMistake) Error() string { return string(m) }

// compilePattern compiles p, which does not include the anchor "^".
func compilePattern(p string) *pattern {
	b := patternBuilder{rest: p}
	for b.rest != "" && !b.broken {
		b.item()
	}
	pat := &pattern{items: b.items, captures: b.level}
	for _, l := range b.openCaptures {
		pat.open[l] = true
	}
	if len(b.items) > 0 {
		switch first := &b.items[0]; {
		case first.op == patLiteral:
			pat.prefix = first.text
		case first.op == patChar && (first.suffix == 0 || first.suffix == '+'):
			pat.prefix = string([]byte{first.char})
		}
	}
	return pat
}

// patternBuilder is the state of a compilation: the pattern still to be read
// and the captures so far.
type patternBuilder struct {
	rest         string
	items        []patternItem
	level        int
	openCaptures []uint8
	closed       [maxCaptures]bool
	broken       bool // a mistake was found; nothing after it can be reached
}

func (b *patternBuilder) emit(it patternItem) { b.items = append(b.items, it) }

func (b *patternBuilder) mistake(message string) {
	b.emit(patternItem{op: patMistake, text: message})
	b.broken = true
}

func (b *patternBuilder) item() {
	switch b.rest[0] {
	case '(':
		b.openCapture()
	case ')':
		b.closeCapture()
	case '$':
		if len(b.rest) == 1 {
			b.rest = ""
			b.emit(patternItem{op: patEnd})
			return
		}
		b.single()
	case '%':
		b.escape()
	default:
		b.single()
	}
}

func (b *patternBuilder) openCapture() {
	it := patternItem{op: patOpen, capture: uint8(b.level)}
	b.rest = b.rest[1:]
	if strings.HasPrefix(b.rest, ")") {
		b.rest = b.rest[1:]
		it.op = patPosition
	}
	if b.level >= maxCaptures {
		b.mistake("too many captures")
		return
	}
	if it.op == patPosition {
		b.closed[b.level] = true
	} else {
		b.openCaptures = append(b.openCaptures, uint8(b.level))
	}
	b.level++
	b.emit(it)
}

func (b *patternBuilder) closeCapture() {
	b.rest = b.rest[1:]
	last := len(b.openCaptures) - 1
	if last < 0 {
		b.mistake("invalid pattern capture")
		return
	}
	l := b.openCaptures[last]
	b.openCaptures = b.openCaptures[:last]
	b.closed[l] = true
	b.emit(patternItem{op: patClose, capture: l})
}

// escape compiles what starts with '%'.
func (b *patternBuilder) escape() {
	if len(b.rest) < 2 {
		b.single()
		return
	}
	switch c := b.rest[1]; {
	case c == 'b':
		b.balance()
	case c == 'f':
		b.frontier()
	case isDecimalDigit(c):
		b.backref(int(c) - '1')
	default:
		b.single()
	}
}

func (b *patternBuilder) balance() {
	if len(b.rest) < 4 {
		b.mistake("malformed pattern (missing arguments to '%b')")
		return
	}
	b.emit(patternItem{op: patBalance, char: b.rest[2], closing: b.rest[3]})
	b.rest = b.rest[4:]
}

func (b *patternBuilder) frontier() {
	b.rest = b.rest[2:]
	if !strings.HasPrefix(b.rest, "[") {
		b.mistake("missing '[' after '%f' in pattern")
		return
	}
	if set := b.bracket(); set != nil {
		b.emit(patternItem{op: patFrontier, set: set})
	}
}

func (b *patternBuilder) backref(l int) {
	b.rest = b.rest[2:]
	if l < 0 || l >= b.level || !b.closed[l] {
		b.mistake("invalid capture index %" + strconv.Itoa(l+1))
		return
	}
	b.emit(patternItem{op: patBackref, capture: uint8(l)})
}

// single compiles an item that matches one byte, with its suffix; runs of
// plain bytes without one become a single literal.
func (b *patternBuilder) single() {
	var it patternItem
	switch c := b.rest[0]; c {
	case '.':
		it.op = patAny
		b.rest = b.rest[1:]
	case '%':
		if len(b.rest) < 2 {
			b.mistake("malformed pattern (ends with '%')")
			return
		}
		it = classItem(b.rest[1])
		b.rest = b.rest[2:]
	case '[':
		set := b.bracket()
		if set == nil {
			return
		}
		it = patternItem{op: patSet, set: set}
	default:
		if n := plainRun(b.rest); n > 1 {
			b.emit(patternItem{op: patLiteral, text: b.rest[:n]})
			b.rest = b.rest[n:]
			return
		}
		it = patternItem{op: patChar, char: c}
		b.rest = b.rest[1:]
	}
	if b.rest != "" && isSuffix(b.rest[0]) {
		it.suffix = b.rest[0]
		b.rest = b.rest[1:]
	}
	b.emit(it)
}

// plainRun counts the bytes at the start of p that stand for themselves and
// have no suffix.
func plainRun(p string) int {
	n := 0
	for n < len(p) && strings.IndexByte("$.[%()", p[n]) < 0 {
		n++
		if n < len(p) && isSuffix(p[n]) {
			return n - 1
		}
	}
	return n
}

func isSuffix(c byte) bool { return c == '*' || c == '+' || c == '-' || c == '?' }

// classItem matches what "%c" matches: a class, or the byte itself.
func classItem(c byte) patternItem {
	if set := charClasses[c]; set != nil {
		return patternItem{op: patSet, set: set}
	}
	return patternItem{op: patChar, char: c}
}

// bracket compiles a set "[...]"; nil, with the mistake noted, when it does
// not end.
func (b *patternBuilder) bracket() *charSet {
	p := b.rest
	k := 1
	negate := k < len(p) && p[k] == '^'
	if negate {
		k++
	}
	end := bracketEnd(p, k)
	if end < 0 {
		b.mistake("malformed pattern (missing ']')")
		return nil
	}
	b.rest = p[end+1:]
	set := new(charSet)
	for ; k < end; k++ {
		switch {
		case p[k] == '%':
			k++
			if class := charClasses[p[k]]; class != nil {
				set.addSet(class)
			} else {
				set.add(p[k])
			}
		case p[k+1] == '-' && k+2 < end:
			set.addRange(p[k], p[k+2])
			k += 2
		default:
			set.add(p[k])
		}
	}
	if negate {
		return set.inverted()
	}
	return set
}

// bracketEnd finds the "]" of a set whose first member is at k; a "]" there
// is a member. It gives -1 when there is none.
func bracketEnd(p string, k int) int {
	for first := true; k < len(p); first = false {
		if p[k] == ']' && !first {
			return k
		}
		if p[k] == '%' && k+1 < len(p) {
			k++
		}
		k++
	}
	return -1
}

// charSet is a set of bytes.
type charSet [4]uint64

func (s *charSet) has(c byte) bool { return s[c>>6]>>(c&63)&1 != 0 }

func (s *charSet) add(c byte) { s[c>>6] |= 1 << (c & 63) }

func (s *charSet) addRange(from, to byte) {
	for c := int(from); c <= int(to); c++ {
		s.add(byte(c))
	}
}

func (s *charSet) addSet(other *charSet) {
	for k := range s {
		s[k] |= other[k]
	}
}

func (s *charSet) inverted() *charSet {
	var inv charSet
	for k := range s {
		inv[k] = ^s[k]
	}
	return &inv
}

// charClasses holds, for each letter that names a class in patterns (%a, %D),
// the bytes of that class in the "C" locale; nil for what names no class.
var charClasses = buildCharClasses()

func buildCharClasses() (classes [256]*charSet) {
	for name, belongs := range map[byte]func(c byte) bool{
		'a': isAlpha,
		'c': func(c byte) bool { return c < ' ' || c == 127 },
		'd': isDecimalDigit,
		'g': isGraph,
		'l': func(c byte) bool { return c >= 'a' && c <= 'z' },
		'p': func(c byte) bool { return isGraph(c) && !isAlpha(c) && !isDecimalDigit(c) },
		's': isSpaceByte,
		'u': func(c byte) bool { return c >= 'A' && c <= 'Z' },
		'w': func(c byte) bool { return isAlpha(c) || isDecimalDigit(c) },
		'x': isHexDigit,
		'z': func(c byte) bool { return c == 0 },
	} {
		set := new(charSet)
		for c := range 256 {
			if belongs(byte(c)) {
				set.add(byte(c))
			}
		}
		classes[name] = set
		classes[name-'a'+'A'] = set.inverted()
	}
	return classes
}

func isAlpha(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isGraph(c byte) bool { return c > ' ' && c < 127 }
