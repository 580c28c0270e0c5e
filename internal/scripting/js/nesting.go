package js

import "strings"

// maxNesting is the deepest nesting of TypeScript source, as estimated by nesting. The
// type stripper recurses on the Go stack, whose overflow ends the process, and takes more
// than quadratic time for nested arrow functions.
const maxNesting = 1000

// nesting estimates how deep a parser recurses for source. It does not distinguish strings
// and comments from code, so it may count too much. It counts what makes parsers recurse:
// open brackets, and operators and keywords since the last end of an expression.
func nesting(source string) int {
	n := nestingCounter{frames: []int{0}}
	for i := 0; i < len(source); i++ {
		switch c := source[i]; {
		case strings.IndexByte("([{`", c) >= 0:
			n.push()
		case strings.IndexByte(")]", c) >= 0:
			n.pop()
		case c == '}':
			n.pop()
			n.reset()
		case c == ';' || c == ',' || c == '\n' && endsExpression(source, i):
			n.reset()
		case c == '=' && strings.HasPrefix(source[i:], "=>"):
			n.add(4)
			i++
		case strings.IndexByte("!~+-=.?:&|*<@", c) >= 0:
			n.add(1)
		case isWord(c):
			word := wordAt(source, i)
			if recursive[word] {
				n.add(2)
			}
			i += len(word) - 1
		}
	}
	return n.deepest
}

// nestingCounter counts per open bracket, so that a closing bracket discards its contents.
type nestingCounter struct {
	frames         []int
	total, deepest int
}

func (n *nestingCounter) push() {
	n.frames = append(n.frames, 0)
	n.add(4)
}

func (n *nestingCounter) pop() {
	n.reset()
	if len(n.frames) > 1 {
		n.frames = n.frames[:len(n.frames)-1]
	}
}

func (n *nestingCounter) add(weight int) {
	n.frames[len(n.frames)-1] += weight
	n.total += weight
	n.deepest = max(n.deepest, n.total)
}

func (n *nestingCounter) reset() {
	n.total -= n.frames[len(n.frames)-1]
	n.frames[len(n.frames)-1] = 0
}

// recursive lists the keywords after which a parser recurses.
var recursive = map[string]bool{
	"if": true, "else": true, "for": true, "while": true, "do": true, "with": true,
	"new": true, "typeof": true, "void": true, "delete": true, "await": true, "yield": true,
	"keyof": true, "async": true, "infer": true, "extends": true, "as": true, "in": true, "of": true, "instanceof": true,
}

// endsExpression reports whether the line break at i separates two operands: then the word
// after it begins a new statement.
func endsExpression(source string, i int) bool {
	before := strings.TrimRight(source[max(0, i-64):i], " \t\r")
	after := strings.TrimLeft(source[i:min(len(source), i+64)], " \t\r\n")
	if before == "" || after == "" || !isWord(after[0]) {
		return false
	}
	last := before[len(before)-1]
	return (isWord(last) || strings.IndexByte(")]\"'`", last) >= 0) && !recursive[wordAt(after, 0)] && !recursive[lastWord(before)]
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c >= 0x80
}

func wordAt(s string, i int) string {
	end := i
	for end < len(s) && isWord(s[end]) {
		end++
	}
	return s[i:end]
}

func lastWord(s string) string {
	start := len(s)
	for start > 0 && isWord(s[start-1]) {
		start--
	}
	return s[start:]
}
