package lua

import (
	"errors"
	"strings"
)

// patternCache remembers the patterns a state compiled last, by their text.
// It is a table of few places, each pattern having one: cheap to look up,
// bounded, and good enough for programs that use the same few patterns again.
type patternCache [32]struct {
	text    string
	pattern *pattern
}

// maxCachedPattern is the length up to which patterns are remembered.
const maxCachedPattern = 128

// pattern gives the compiled form of text, charging the work of compiling.
func (c *Call) pattern(text string) (*pattern, error) {
	if len(text) > maxCachedPattern {
		if err := c.Alloc(len(text) * patternItemSize); err != nil {
			return nil, err
		}
		if err := c.Step(len(text)); err != nil {
			return nil, err
		}
		return compilePattern(text), nil
	}
	if c.state.patterns == nil {
		c.state.patterns = new(patternCache)
	}
	return c.state.patterns.get(text), nil
}

func (p *patternCache) get(text string) *pattern {
	hash := uint(len(text)) * 7
	for k := 0; k < len(text); k += 1 + len(text)/8 {
		hash = hash*31 + uint(text[k])
	}
	place := &p[hash%uint(len(p))]
	if place.pattern == nil || place.text != text {
		text = strings.Clone(text) // the script's string may be part of a large one
		place.text, place.pattern = text, compilePattern(text)
	}
	return place.pattern
}

// raisePattern gives mistakes in patterns the position of the script; other
// errors stay as they are.
func raisePattern(c *Call, err error) error {
	if mistake := patternMistake(""); errors.As(err, &mistake) {
		return c.Errorf("%s", string(mistake))
	}
	return err
}

// isPlain tells whether a pattern has no special characters.
func isPlain(p string) bool { return !strings.ContainsAny(p, "^$*+?.([%-") }

func stringFind(c *Call) error  { return findOrMatch(c, true) }
func stringMatch(c *Call) error { return findOrMatch(c, false) }

func findOrMatch(c *Call, find bool) error {
	s, err := c.CheckString(1)
	if err != nil {
		return err
	}
	p, err := c.CheckString(2)
	if err != nil {
		return err
	}
	init, err := c.OptInt(3, 1)
	if err != nil {
		return err
	}
	from := startPosition(init, len(s)) - 1
	if from > len(s) {
		return c.Return(Nil)
	}
	if find && (isPlain(p) || c.Arg(4).Truthy()) {
		return findPlain(c, s, p, from)
	}
	text, anchored := strings.CutPrefix(p, "^")
	pat, err := c.pattern(text)
	if err != nil {
		return err
	}
	m := newMatcher(pat, s, c)
	start, end, err := m.find(from, anchored)
	if err != nil {
		return raisePattern(c, err)
	}
	if err := m.settle(); err != nil {
		return err
	}
	switch {
	case start < 0:
		return c.Return(Nil)
	case !find:
		return pushCaptures(c, &m, start, end)
	}
	if err := c.Return(Int(int64(start+1)), Int(int64(end))); err != nil {
		return err
	}
	if pat.captures == 0 {
		return nil
	}
	return pushCaptures(c, &m, start, end)
}

func findPlain(c *Call, s, p string, from int) error {
	if err := c.Step((len(s) - from) / bytesPerStep); err != nil {
		return err
	}
	k := strings.Index(s[from:], p)
	if k < 0 {
		return c.Return(Nil)
	}
	return c.Return(Int(int64(from+k+1)), Int(int64(from+k+len(p))))
}

// settle charges the work not yet charged to the budget.
func (m *matcher) settle() error {
	n := m.work
	m.work = 0
	return m.budget.Step(n)
}

// pushCaptures adds the captures of a match to the results.
func pushCaptures(c *Call, m *matcher, start, end int) error {
	for l := range m.resultCount() {
		v, err := captureValue(c, m, l, start, end)
		if err != nil {
			return err
		}
		c.Push(v)
	}
	return nil
}

// captureValue makes the value of capture l: a string or a position.
func captureValue(c *Call, m *matcher, l, start, end int) (Value, error) {
	found, err := m.capture(l, start, end)
	switch {
	case err != nil:
		return Nil, raisePattern(c, err)
	case found.end == isPosition:
		return Int(int64(found.start + 1)), nil
	}
	return c.newString(m.subject[found.start:found.end])
}

// gmatchIterator is what string.gmatch returns an instance of. Its values are
// the subject, the pattern, the position to go on from, and the end of the
// last match, which an empty match must not repeat.
var gmatchIterator = NewFunc("string.gmatch.iterator", gmatchNext)

func stringGmatch(c *Call) error {
	s, err := c.CheckString(1)
	if err != nil {
		return err
	}
	if _, err := c.CheckString(2); err != nil {
		return err
	}
	init, err := c.OptInt(3, 1)
	if err != nil {
		return err
	}
	from := min(startPosition(init, len(s))-1, len(s)+1)
	if err := c.Alloc(closureSize + 4*int(valueSize)); err != nil {
		return err
	}
	iterator := gmatchIterator.Bind(c.stringValue(1), c.stringValue(2), Int(int64(from)), Int(-1))
	return c.Return(iterator.Value())
}

func gmatchNext(c *Call) error {
	s, _ := c.Upvalue(1).AsString()
	p, _ := c.Upvalue(2).AsString()
	from, _ := c.Upvalue(3).AsInt()
	last, _ := c.Upvalue(4).AsInt()
	pat, err := c.pattern(p)
	if err != nil {
		return err
	}
	m := newMatcher(pat, s, c)
	start, end, err := m.find(int(from), false)
	if err == nil && start >= 0 && end == int(last) {
		start, end, err = m.find(start+1, false)
	}
	if err != nil {
		return raisePattern(c, err)
	}
	if err := m.settle(); err != nil {
		return err
	}
	if start < 0 {
		c.SetUpvalue(3, Int(int64(len(s)+1)))
		return nil
	}
	c.SetUpvalue(3, Int(int64(end)))
	c.SetUpvalue(4, Int(int64(end)))
	return pushCaptures(c, &m, start, end)
}

// substitution is one call of string.gsub.
type substitution struct {
	c       *Call
	out     textBuffer
	m       matcher
	repl    Value
	text    string // of repl when that is a string or number
	simple  bool   // text has no '%'
	copied  int    // how far the subject has been copied to out
	changed bool
}

func stringGsub(c *Call) error {
	s, err := c.CheckString(1)
	if err != nil {
		return err
	}
	p, err := c.CheckString(2)
	if err != nil {
		return err
	}
	sub := substitution{c: c, out: textBuffer{c: c}, repl: c.Arg(3)}
	switch sub.repl.Kind() {
	case KindString, KindInt, KindFloat:
		sub.text = sub.repl.String()
		sub.simple = strings.IndexByte(sub.text, '%') < 0
	case KindTable, KindFunction:
	default:
		return c.TypeError(3, "string/function/table")
	}
	limit, err := c.OptInt(4, int64(len(s)+1))
	if err != nil {
		return err
	}
	p, anchored := strings.CutPrefix(p, "^")
	pat, err := c.pattern(p)
	if err != nil {
		return err
	}
	sub.m = newMatcher(pat, s, c)
	n, err := sub.run(limit, anchored)
	if err != nil {
		return raisePattern(c, err)
	}
	if !sub.changed {
		return c.Return(c.stringValue(1), Int(n))
	}
	if err := sub.copyTo(len(s)); err != nil {
		return err
	}
	if err := sub.out.finish(); err != nil {
		return err
	}
	c.Push(Int(n))
	return nil
}

// run replaces up to limit matches and gives their number.
func (sub *substitution) run(limit int64, anchored bool) (n int64, err error) {
	m := &sub.m
	for pos, last := 0, -1; n < limit; {
		start, end, err := m.find(pos, anchored)
		if err != nil {
			return n, err
		}
		if start < 0 {
			break
		}
		if end == last { // an empty match right after the last match
			pos = start + 1
		} else {
			n++
			if err := sub.replace(start, end); err != nil {
				return n, err
			}
			pos, last = end, end
		}
		if anchored {
			break
		}
	}
	return n, m.settle()
}

// copyTo copies the subject up to end that is not copied yet.
func (sub *substitution) copyTo(end int) error {
	err := sub.out.add(sub.m.subject[sub.copied:end])
	sub.copied = end
	return err
}

// replace adds what stands for one match.
func (sub *substitution) replace(start, end int) error {
	var v Value
	var err error
	switch sub.repl.Kind() {
	case KindFunction:
		v, err = sub.callback(start, end)
	case KindTable:
		if v, err = captureValue(sub.c, &sub.m, 0, start, end); err == nil {
			v, err = sub.c.Index(sub.repl, v)
		}
	default:
		return sub.expand(start, end)
	}
	if err != nil {
		return err
	}
	if !v.Truthy() {
		return nil // the match is copied with what surrounds it
	}
	if !v.isString() && !v.isNumber() {
		return sub.c.Errorf("invalid replacement value (a %s)", sub.c.state.typeName(v))
	}
	return sub.put(v.String(), start, end)
}

// put adds text in place of a match.
func (sub *substitution) put(text string, start, end int) error {
	if err := sub.copyTo(start); err != nil {
		return err
	}
	sub.copied = end
	sub.changed = true
	return sub.out.add(text)
}

func (sub *substitution) callback(start, end int) (Value, error) {
	var room [4]Value
	args := room[:0]
	for l := range sub.m.resultCount() {
		v, err := captureValue(sub.c, &sub.m, l, start, end)
		if err != nil {
			return Nil, err
		}
		args = append(args, v)
	}
	return sub.c.call1(sub.repl, args...)
}

// expand adds the replacement text with the captures it names.
func (sub *substitution) expand(start, end int) error {
	if sub.simple {
		return sub.put(sub.text, start, end)
	}
	if err := sub.put("", start, end); err != nil {
		return err
	}
	for text := sub.text; ; {
		before, after, found := strings.Cut(text, "%")
		if err := sub.out.add(before); err != nil || !found {
			return err
		}
		if after == "" || after[0] != '%' && !isDecimalDigit(after[0]) {
			return sub.c.Errorf("invalid use of '%%' in replacement string")
		}
		if err := sub.addCapture(after[0], start, end); err != nil {
			return err
		}
		text = after[1:]
	}
}

// addCapture adds what "%name" stands for.
func (sub *substitution) addCapture(name byte, start, end int) error {
	switch name {
	case '%':
		return sub.out.add("%")
	case '0':
		return sub.out.add(sub.m.subject[start:end])
	}
	found, err := sub.m.capture(int(name-'1'), start, end)
	switch {
	case err != nil:
		return err
	case found.end == isPosition:
		return sub.out.add(formatInt(int64(found.start + 1)))
	}
	return sub.out.add(sub.m.subject[found.start:found.end])
}
