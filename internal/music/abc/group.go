package abc

import "strings"

// bracket reads what begins with [: a field, an ending, a bar line or a chord.
func (s *scanner) bracket() {
	c := s.peek(1)
	switch {
	case s.peek(2) == ':' && isLetter(c):
		s.inlineField()
	case c == '|' || c == ']':
		s.bar()
	case c >= '1' && c <= '9' || c == '"' && strings.IndexByte(s.text[s.i:], ']') < 0:
		start := s.i
		s.i++
		s.ending(&Bar{}, start)
	default:
		s.chord()
	}
}

// inlineField reads [K:G].
func (s *scanner) inlineField() {
	start := s.i
	size := strings.IndexByte(s.text[start:], ']')
	if size < 0 {
		s.p.diag.fail(s.at(start), "a [ that is not closed")
		s.i = len(s.text)
		return
	}
	s.i += size + 1
	value, valueStart := trimmed(s.text[start+3:s.i-1], start+3)
	f := &Field{Place: s.place("field", start), Name: s.text[start+1 : start+2], Value: value, Inline: true}
	f.valueStart = s.line.offset + valueStart
	s.p.field(f)
}

// maxRepeats bounds how often a section is played.
const maxRepeats = 16

// bar reads a bar line with its repeats and its ending: :|2 or |: or ||.
func (s *scanner) bar() {
	start := s.i
	b, lines := s.strokes()
	if s.text[start:s.i] == "]" {
		s.p.diag.fail(s.at(start), "a ] that closes nothing")
		return
	}
	switch {
	case lines > 0:
		b.Begins = s.take(":")
	case b.Ends >= 2 && !b.Double: // :: stands for :|:
		b.Ends, b.Begins = b.Ends/2, b.Ends-b.Ends/2
	case b.Ends == 1 && !b.Double:
		s.p.diag.fail(s.at(start), "a : without a bar line")
		return
	}
	if b.Ends >= maxRepeats || b.Begins >= maxRepeats {
		s.p.diag.fail(s.at(start), "a section repeated more than %d times", maxRepeats)
		b.Ends, b.Begins = min(b.Ends, maxRepeats-1), min(b.Begins, maxRepeats-1)
	}
	s.ending(b, start)
}

// strokes reads the line itself, with the colons before it, and tells how many
// strokes it has.
func (s *scanner) strokes() (b *Bar, lines int) {
	b = &Bar{line: true}
	b.Ends = s.take(":")
	if s.peek(0) == '[' && (s.peek(1) == '|' || s.peek(1) == ']') {
		s.i++
		b.Double = true
	}
	lines = s.take("|")
	if s.peek(0) == ']' {
		s.i++
		b.Double = true
	}
	b.Double = b.Double || lines > 1
	return b, lines
}

// ending reads the numbers after a bar line, 1 or 1,3 or 2-4, and adds the bar.
func (s *scanner) ending(b *Bar, start int) {
	for more := isPass(s.peek(0)); more; {
		from, to := s.passes()
		if to < from || to > maxRepeats {
			s.p.diag.fail(s.at(start), "an ending for pass %d to %d", from, to)
			break
		}
		for ; from <= to && len(b.Ending) < maxRepeats; from++ {
			b.Ending = append(b.Ending, from)
		}
		if more = s.peek(0) == ',' && isPass(s.peek(1)); more {
			s.i++
		}
	}
	b.Text = s.text[start:s.i]
	b.Place = s.place("bar", start)
	if !b.line && s.joinEnding(b) {
		return
	}
	s.p.add(b)
}

// isPass tells whether c begins the number of a pass.
func isPass(c byte) bool { return c >= '1' && c <= '9' }

// passes reads 2 or 2-4.
func (s *scanner) passes() (from, to int) {
	from, _ = s.number()
	if s.peek(0) != '-' || !isPass(s.peek(1)) {
		return from, from
	}
	s.i++
	to, _ = s.number()
	return from, to
}

// joinEnding makes one bar line of a line and the ending right after it: :| [2.
func (s *scanner) joinEnding(b *Bar) bool {
	items := s.p.voice.Items
	if len(items) == 0 {
		return false
	}
	before, ok := items[len(items)-1].(*Bar)
	if !ok || before.Ending != nil {
		return false
	}
	before.Ending, before.Text, before.end = b.Ending, before.Text+b.Text, b.end
	return true
}

// chord reads [CEG]2.
func (s *scanner) chord() {
	start := s.i
	s.i++
	c := &Chord{}
	for {
		switch next := s.peek(0); {
		case next == 0:
			s.p.diag.fail(s.at(start), "a [ that is not closed")
			return
		case next == ']':
			s.i++
			s.closeChord(c, start)
			return
		case beginsNote(next):
			if note := s.note(); note != nil {
				c.Notes = append(c.Notes, note)
			}
		case next == '-' && len(c.Notes) > 0:
			s.i++
			c.Notes[len(c.Notes)-1].Tie = true
		case oneOf(" \t().-", next):
			s.i++
		case next == '"':
			s.quoted()
		case next == '!':
			s.decoration(next)
		case oneOf("zx", next): // a rest in a chord has no sound
			s.i++
			s.length()
		default:
			s.unknown()
		}
	}
}

// maxChord bounds the notes of a chord.
const maxChord = 64

func (s *scanner) closeChord(c *Chord, start int) {
	c.Length = s.length()
	c.Place = s.place("chord", start)
	switch {
	case len(c.Notes) == 0:
		s.p.diag.fail(c.Position, "a chord without notes")
	case len(c.Notes) > maxChord:
		s.p.diag.fail(c.Position, "a chord of more than %d notes", maxChord)
	default:
		s.sound(c)
	}
}

// grace reads {gef} or {/g}.
func (s *scanner) grace() {
	start := s.i
	s.i++
	g := &Grace{Slashed: s.take("/") > 0}
	for {
		switch next := s.peek(0); {
		case next == 0:
			s.p.diag.fail(s.at(start), "a { that is not closed")
			return
		case next == '}':
			s.i++
			g.Place = s.place("grace", start)
			s.p.add(g)
			return
		case isNote(next) || next == '^' || next == '_' || next == '=':
			if note := s.note(); note != nil {
				g.Notes = append(g.Notes, note)
			}
		case strings.IndexByte(" \t[]()-<>.", next) >= 0:
			s.i++
		default:
			s.unknown()
		}
	}
}

// paren reads a tuplet (3 or (3:2:4, or opens a slur.
func (s *scanner) paren() {
	start := s.i
	s.i++
	if c := s.peek(0); c < '2' || c > '9' {
		s.p.slurs++
		s.p.add(&Slur{Place: s.place("slur", start), Open: true})
		return
	}
	t := &Tuplet{}
	t.Notes, _ = s.number()
	if s.peek(0) == ':' && s.peek(1) != '|' {
		s.i++
		t.With, _ = s.number()
		if s.peek(0) == ':' && s.peek(1) != '|' {
			s.i++
			t.Count, _ = s.number()
		}
	}
	t.Place = s.place("tuplet", start)
	if t.Notes > 64 || t.With > 64 || t.Count > 64 {
		s.p.diag.fail(t.Position, "%s is not a tuplet", s.text[start:s.i])
		return
	}
	s.p.add(t)
}

func (s *scanner) closeSlur() {
	start := s.i
	s.i++
	if s.p.slurs == 0 {
		s.p.diag.warn(s.at(start), "a ) that closes nothing")
		return
	}
	s.p.slurs--
	s.p.add(&Slur{Place: s.place("slur", start)})
}
