package lua

import "strings"

// stepper is charged for work done in library loops; it fails when a budget
// is spent.
type stepper interface {
	Step(n int) error
}

// matchStride is how much work a match does before it reports to the budget.
const matchStride = 4096

// A matcher matches one pattern against one subject. Since patterns are
// sequences, each item has at most one choice to come back to, so the choices
// fit in a list no longer than the pattern, and captures need no undoing: an
// item that sets a capture is passed again before the capture is used again.
type matcher struct {
	pat     *pattern
	subject string
	budget  stepper
	work    int // done since the budget was last charged

	captures [maxCaptures]captured
	open     int       // number of choices
	choices  [8]choice // the first of them, enough for ordinary patterns
	more     []choice  // the rest
}

// captured is the range of a capture; of a position capture only start counts
// and end is isPosition.
type captured struct{ start, end int }

const isPosition = -1

// choice is a point to come back to when what follows does not match.
type choice struct {
	item  int // index of the item with a suffix
	pos   int // subject position tried last
	low   int // smallest position worth trying, for greedy suffixes
	depth int
}

func (m *matcher) push(c choice) {
	if m.open < len(m.choices) {
		m.choices[m.open] = c
	} else {
		m.more = append(m.more[:m.open-len(m.choices)], c)
	}
	m.open++
}

func (m *matcher) choice(k int) *choice {
	if k < len(m.choices) {
		return &m.choices[k]
	}
	return &m.more[k-len(m.choices)]
}

func newMatcher(pat *pattern, subject string, budget stepper) matcher {
	return matcher{pat: pat, subject: subject, budget: budget}
}

// find looks for the first match at or after from; only at from when anchored.
// It gives start -1 when there is none.
func (m *matcher) find(from int, anchored bool) (start, end int, err error) {
	for s := from; s <= len(m.subject); s++ {
		if m.pat.prefix != "" && !anchored {
			k := strings.Index(m.subject[s:], m.pat.prefix)
			if k < 0 {
				return -1, 0, m.charge(len(m.subject) - s)
			}
			m.work += k
			s += k
		}
		e, err := m.matchAt(s)
		if err != nil || e >= 0 {
			return s, e, err
		}
		if anchored {
			break
		}
	}
	return -1, 0, nil
}

// charge adds to the work done and tells the budget when it is due.
func (m *matcher) charge(n int) error {
	m.work += n
	if m.work < matchStride {
		return nil
	}
	n, m.work = m.work, 0
	return m.budget.Step(n)
}

// matchAt matches the whole pattern at s and gives the end of the match, or -1.
func (m *matcher) matchAt(s int) (int, error) {
	items, subject := m.pat.items, m.subject
	m.open = 0
	depth := 0
	for i := 0; ; {
		if m.work++; m.work >= matchStride {
			if err := m.charge(0); err != nil {
				return -1, err
			}
		}
		if i == len(items) {
			return s, nil
		}
		it := &items[i]
		ok := false
		switch it.op {
		case patChar, patAny, patSet:
			if it.suffix == 0 {
				ok = s < len(subject) && it.accepts(subject[s])
				s++
			} else {
				s, depth, ok = m.repeat(it, i, s, depth)
			}
		case patLiteral:
			ok = strings.HasPrefix(subject[s:], it.text)
			s += len(it.text)
		case patOpen, patClose, patPosition:
			m.setCapture(it, s)
			depth++
			ok = true
		case patEnd:
			ok = s == len(subject)
		case patFrontier:
			ok = m.atFrontier(it.set, s)
		case patBalance:
			s, ok = m.balanced(it, s)
		case patBackref:
			s, ok = m.repeats(m.captures[it.capture], s)
		case patMistake:
			return -1, patternMistake(it.text)
		}
		if depth >= maxPatternDepth {
			return -1, patternMistake("pattern too complex")
		}
		if ok {
			i++
		} else if i, s, depth = m.retry(); i < 0 {
			return -1, nil
		}
	}
}

// setCapture notes that a capture begins, ends or is the position s.
func (m *matcher) setCapture(it *patternItem, s int) {
	switch it.op {
	case patOpen:
		m.captures[it.capture] = captured{start: s}
	case patClose:
		m.captures[it.capture].end = s
	default:
		m.captures[it.capture] = captured{start: s, end: isPosition}
	}
}

// accepts tells whether a single-byte item matches c.
func (it *patternItem) accepts(c byte) bool {
	switch it.op {
	case patAny:
		return true
	case patChar:
		return c == it.char
	}
	return it.set.has(c)
}

// repeat matches an item with a suffix and notes what else could be tried.
func (m *matcher) repeat(it *patternItem, i, s, depth int) (int, int, bool) {
	subject := m.subject
	if s >= len(subject) || !it.accepts(subject[s]) {
		return s, depth, it.suffix != '+'
	}
	switch it.suffix {
	case '-':
		m.push(choice{item: i, pos: s, depth: depth})
		return s, depth + 1, true
	case '?':
		m.push(choice{item: i, pos: s + 1, low: s, depth: depth})
		return s + 1, depth + 1, true
	}
	end := it.run(subject, s+1)
	m.work += end - s
	low := s
	if it.suffix == '+' {
		low++
	}
	if end > low {
		m.push(choice{item: i, pos: end, low: low, depth: depth})
	}
	return end, depth + 1, true
}

// run gives the end of the longest run of accepted bytes from s.
func (it *patternItem) run(subject string, s int) int {
	switch it.op {
	case patAny:
		return len(subject)
	case patChar:
		for s < len(subject) && subject[s] == it.char {
			s++
		}
	case patSet:
		set := it.set
		for s < len(subject) && set.has(subject[s]) {
			s++
		}
	}
	return s
}

// retry goes back to the last choice that has something left to try, and
// gives the item and position to go on from; item -1 when nothing is left.
func (m *matcher) retry() (item, s, depth int) {
	for ; m.open > 0; m.open-- {
		c := m.choice(m.open - 1)
		it := &m.pat.items[c.item]
		switch {
		case it.suffix == '-':
			if c.pos < len(m.subject) && it.accepts(m.subject[c.pos]) {
				c.pos++
				return c.item + 1, c.pos, c.depth + 1
			}
		case it.suffix == '?':
			m.open--
			return c.item + 1, c.low, c.depth
		case c.pos > c.low:
			c.pos--
			return c.item + 1, c.pos, c.depth + 1
		}
	}
	return -1, 0, 0
}

// atFrontier tells whether s is where a run of set begins. Both ends of the
// subject count as a zero byte.
func (m *matcher) atFrontier(set *charSet, s int) bool {
	var before, here byte
	if s > 0 {
		before = m.subject[s-1]
	}
	if s < len(m.subject) {
		here = m.subject[s]
	}
	return !set.has(before) && set.has(here)
}

// balanced matches "%bxy" at s and gives the position after it.
func (m *matcher) balanced(it *patternItem, s int) (int, bool) {
	subject := m.subject
	if s >= len(subject) || subject[s] != it.char {
		return s, false
	}
	open := 1
	for k := s + 1; k < len(subject); k++ {
		switch subject[k] {
		case it.closing:
			if open--; open == 0 {
				m.work += k - s
				return k + 1, true
			}
		case it.char:
			open++
		}
	}
	m.work += len(subject) - s
	return s, false
}

// repeats matches at s the text that a capture holds. A position capture
// holds no text that could ever be there.
func (m *matcher) repeats(c captured, s int) (int, bool) {
	if c.end == isPosition {
		return s, false
	}
	text := m.subject[c.start:c.end]
	m.work += len(text)
	return s + len(text), strings.HasPrefix(m.subject[s:], text)
}

// capture gives the range of capture l (from 0) of a match from start to end;
// the whole match when the pattern has no captures and l is 0.
func (m *matcher) capture(l, start, end int) (captured, error) {
	switch {
	case l < m.pat.captures && m.pat.open[l]:
		return captured{}, patternMistake("unfinished capture")
	case l < m.pat.captures:
		return m.captures[l], nil
	case l == 0:
		return captured{start, end}, nil
	}
	return captured{}, patternMistake("invalid capture index %" + formatInt(int64(l+1)))
}

// resultCount is how many values a match gives.
func (m *matcher) resultCount() int { return max(m.pat.captures, 1) }
