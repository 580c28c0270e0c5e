package lua

import "strings"

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
