package abc

import (
	"slices"
	"strings"
)

// unfold lists the indices of steps in the order they are played: repeats are
// written out, and endings left out in the passes they are not for. A section
// is played at most maxRepeats times and none contains another, so the list is
// at most so many times longer than the steps.
func unfold(steps []step) []int {
	u := &unfolder{steps: steps, passes: passes(steps), pass: 1}
	for u.i < len(steps) {
		u.order = append(u.order, u.i)
		if b := steps[u.i].bar; b != nil {
			u.bar(b)
		} else {
			u.i++
		}
	}
	return u.order
}

// unfolder steps through a voice as a player does.
type unfolder struct {
	steps  []step
	passes []int // see passes
	order  []int

	i        int
	pass     int  // from 1
	start    int  // where the section begins
	times    int  // how often its |: wants it, beyond the first
	explicit bool // it began with |:
	ended    bool // an ending is being played

	next [maxRepeats + 1][]int // by pass and step: see ending
}

// bar handles a bar line and moves on.
func (u *unfolder) bar(b *Bar) {
	total := max(b.Ends, u.times, u.passes[u.start]-1) + 1
	if b.Ends > 0 {
		if u.pass < total {
			u.pass++
			u.i, u.ended = u.start, false
			return
		}
		u.section(u.i+1, 0)
	}
	switch {
	case b.Begins > 0:
		u.section(u.i+1, b.Begins)
		u.explicit = true
	case b.Double && b.Ends == 0 && len(b.Ending) == 0 && u.over(total):
		u.section(u.i+1, 0)
	}
	if len(b.Ending) > 0 {
		u.enter(b)
		return
	}
	u.i++
}

// over reports whether a double bar ends the section: it has no repeat, or its last
// ending has been played.
func (u *unfolder) over(total int) bool {
	if u.ended {
		return u.pass >= total
	}
	return !u.explicit && u.pass == 1
}

// section begins a new section.
func (u *unfolder) section(start, times int) {
	u.start, u.times = start, times
	u.pass, u.explicit, u.ended = 1, false, false
}

// enter plays an ending, or skips to the one for this pass.
func (u *unfolder) enter(b *Bar) {
	u.ended = true
	if slices.Contains(b.Ending, u.pass) {
		u.i++
		return
	}
	to := u.ending(u.i + 1)
	if other := u.steps[to].bar; other != nil && other.Ends > 0 && !slices.Contains(other.Ending, u.pass) {
		u.section(to+1, 0)
	}
	u.i = to + 1
}

// ending is the bar line at or after from that opens the ending for this
// pass; without one, the line that closes the endings; without that either,
// the line before from, so that nothing is lost.
func (u *unfolder) ending(from int) int {
	table := u.next[u.pass]
	if table == nil {
		table = u.tabulate(u.pass)
		u.next[u.pass] = table
	}
	if found := table[from]; found >= 0 {
		return found
	}
	return from - 1
}

// tabulate computes ending for every step at once, from the back.
func (u *unfolder) tabulate(pass int) []int {
	table := make([]int, len(u.steps)+1)
	found, closing := -1, -1
	table[len(u.steps)] = -1
	for i := len(u.steps) - 1; i >= 0; i-- {
		if b := u.steps[i].bar; b != nil {
			switch {
			case slices.Contains(b.Ending, pass):
				found = i
			case b.Begins > 0 || b.Ends > 0 && len(b.Ending) == 0:
				found, closing = -1, i-1
				if b.Begins == 0 {
					closing = i
				}
			}
		}
		table[i] = found
		if found < 0 {
			table[i] = closing
		}
	}
	return table
}

// passes returns for each step the number of passes that the following endings of
// its section need; 0 if there are none.
func passes(steps []step) []int {
	table := make([]int, len(steps)+1)
	for i := len(steps) - 1; i >= 0; i-- {
		b := steps[i].bar
		switch {
		case b == nil:
			table[i] = table[i+1]
		case b.Begins > 0 || b.Ends > 0 && len(b.Ending) == 0:
			table[i] = 0
		case len(b.Ending) > 0:
			table[i] = max(table[i+1], slices.Max(b.Ending))
		default:
			table[i] = table[i+1]
		}
	}
	return table
}

// maxParts is the largest number of parts in a P: field.
const maxParts = 10_000

// expandParts writes the order of parts out: "A2(BC)2" is "AABCBC". Dots and
// spaces only separate. ok is false when it is malformed or too long.
func expandParts(text string) (order string, ok bool) {
	e := &partExpander{text: text}
	order, ok = e.group(0)
	return order, ok && e.i == len(text)
}

// partExpander reads an order of parts.
type partExpander struct {
	text string
	i    int
}

// group reads up to the closing parenthesis or the end.
func (e *partExpander) group(depth int) (order string, ok bool) {
	var out strings.Builder
	for e.i < len(e.text) {
		c := e.text[e.i]
		part := ""
		switch {
		case c == ')':
			return out.String(), depth > 0
		case oneOf(" .,", c):
			e.i++
			continue
		case c == '(' && depth < 20:
			e.i++
			if part, ok = e.group(depth + 1); !ok || e.i >= len(e.text) {
				return "", false
			}
			e.i++
		case isLetter(c):
			part = e.text[e.i : e.i+1]
			e.i++
		default:
			return "", false
		}
		part = strings.Repeat(part, min(e.count(), maxParts))
		if out.Len()+len(part) > maxParts {
			return "", false
		}
		out.WriteString(part)
	}
	return out.String(), depth == 0
}

func isLetter(c byte) bool { return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' }

// count reads how often the previous part or group is played.
func (e *partExpander) count() int {
	n, digits := 0, false
	for ; e.i < len(e.text) && e.text[e.i] >= '0' && e.text[e.i] <= '9'; e.i++ {
		n, digits = min(10*n+int(e.text[e.i]-'0'), 100), true
	}
	if !digits {
		return 1
	}
	return n
}

// perform lists the steps of a voice in the order they are played: parts in
// the order the tune gives, with repeats expanded. Steps before the first part
// come first. An order of a single part is taken for a misplaced label and
// ignored. The list ends after limit steps.
func perform(tune *Tune, steps []step, limit int) []int {
	order, ok := expandParts(tune.Parts)
	sections := partSections(steps)
	if !ok || len(order) < 2 || len(sections) == 0 {
		return unfold(steps)
	}
	played := unfold(steps[:sections[0].from])
	unfolded := map[string][]int{}
	for _, s := range sections {
		if _, twice := unfolded[s.label]; twice {
			continue
		}
		list := unfold(steps[s.from:s.to])
		for i := range list {
			list[i] += s.from
		}
		unfolded[s.label] = list
	}
	for i := range order {
		list := unfolded[order[i:i+1]]
		if len(played)+len(list) > limit {
			return append(played, list[:limit-len(played)]...)
		}
		played = append(played, list...)
	}
	return played
}

// partSection holds the steps of one part.
type partSection struct {
	label    string
	from, to int
}

func partSections(steps []step) []partSection {
	var sections []partSection
	for i, s := range steps {
		if s.part == "" {
			continue
		}
		if n := len(sections); n > 0 {
			sections[n-1].to = i
		}
		sections = append(sections, partSection{s.part, i, len(steps)})
	}
	return sections
}
