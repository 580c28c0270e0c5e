package abc

import "strings"

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
