package abc

import (
	"strings"
	"unicode/utf8"
)

// scanner reads a line of music.
type scanner struct {
	p    *parser
	line line
	text string // without comment
	i    int    // the next byte

	last             Item   // the note or chord a tie may follow
	call             *Place // where the macro was called whose text this is; nil: none
	columnAt, column int    // a byte whose column is known
}

// music reads a line of music into the voice at hand.
func (p *parser) music(l line) {
	text := strings.TrimRight(uncommented(l.text), " \t")
	s := &scanner{p: p, line: l, text: strings.TrimSuffix(text, `\`), column: 1}
	for s.i < len(s.text) {
		s.next()
	}
}

// at is the position of a byte. It counts from the byte last asked for, which
// is never far, so that a line takes linear time however long it is.
func (s *scanner) at(i int) Position {
	if s.call != nil {
		return s.call.Position
	}
	if i < s.columnAt {
		s.column -= utf8.RuneCountInString(s.text[i:s.columnAt])
	} else {
		s.column += utf8.RuneCountInString(s.text[s.columnAt:i])
	}
	s.columnAt = i
	return Position{s.line.number, s.column}
}

// place is where the bytes from start to the next one are.
func (s *scanner) place(kind string, start int) Place {
	if s.call != nil {
		p := *s.call
		p.Kind = kind
		return p
	}
	return Place{Kind: kind, Position: s.at(start), start: s.line.offset + start, end: s.line.offset + s.i}
}

// peek is the byte n after the next one, 0 at the end.
func (s *scanner) peek(n int) byte {
	if s.i+n < len(s.text) {
		return s.text[s.i+n]
	}
	return 0
}

// take skips bytes that are in set and returns how many.
func (s *scanner) take(set string) int {
	start := s.i
	for s.i < len(s.text) && strings.IndexByte(set, s.text[s.i]) >= 0 {
		s.i++
	}
	return s.i - start
}

// next reads one thing.
func (s *scanner) next() {
	if s.macro() {
		return
	}
	switch c := s.text[s.i]; {
	case oneOf(" \t`$", c):
		s.i++
	case beginsNote(c):
		s.single()
	case oneOf("zxZX", c):
		s.rest()
	case c == 'y':
		s.i++
		s.length()
	case oneOf("|:]", c):
		s.bar()
	case c == '[':
		s.bracket()
	case c == '(':
		s.paren()
	case c == ')':
		s.closeSlur()
	case c == '{':
		s.grace()
	case c == '"':
		s.quoted()
	case oneOf("!+", c):
		s.decoration(c)
	case c == '.':
		s.dot()
	case isDecoration(c):
		s.letter()
	case oneOf("<>", c):
		s.broken()
	case c == '-':
		s.tie()
	case c == '&':
		s.overlay()
	default:
		s.unknown()
	}
}

func oneOf(set string, c byte) bool { return strings.IndexByte(set, c) >= 0 }

func isNote(c byte) bool { return c >= 'A' && c <= 'G' || c >= 'a' && c <= 'g' }

func beginsNote(c byte) bool { return isNote(c) || oneOf("^_=", c) }

func isDecoration(c byte) bool { return c == '~' || c >= 'H' && c <= 'W' || c >= 'h' && c <= 'w' }

// unknown skips a character that has no meaning.
func (s *scanner) unknown() {
	r, size := utf8.DecodeRuneInString(s.text[s.i:])
	switch {
	case strings.ContainsRune("#*;?@\\", r):
		s.p.diag.warn(s.at(s.i), "%q has no meaning here", r)
	default:
		s.p.diag.fail(s.at(s.i), "unexpected %q", r)
	}
	s.i += size
}

// single reads a note and adds it.
func (s *scanner) single() {
	if note := s.note(); note != nil {
		s.sound(note)
	}
}

// sound adds a note or chord that a tie may follow.
func (s *scanner) sound(item Item) {
	s.p.add(item)
	s.last, s.p.sawMusic = item, true
}

// note reads accidental, letter, octave marks and length; nil when an
// accidental stands alone.
func (s *scanner) note() *Note {
	start := s.i
	note := &Note{}
	if alter, n := parseAccidental(s.text[s.i:]); n > 0 {
		note.Accidental = &alter
		s.i += n
		s.microtone(note)
	}
	c := s.peek(0)
	if !isNote(c) {
		s.p.diag.fail(s.at(start), "an accidental without a note")
		return nil
	}
	s.i++
	note.Letter = string(c &^ 0x20)
	if c >= 'a' {
		note.Octave = 1
	}
	for ; s.peek(0) == '\'' || s.peek(0) == ','; s.i++ {
		if s.peek(0) == '\'' {
			note.Octave++
		} else {
			note.Octave--
		}
	}
	if note.Octave < -5 || note.Octave > 5 {
		s.p.diag.fail(s.at(start), "a note %d octaves from middle C", note.Octave)
		note.Octave = min(max(note.Octave, -5), 5)
	}
	note.pitchEnd = s.line.offset + s.i
	note.Length = s.length()
	note.Place = s.place("note", start)
	return note
}

// microtone reads the fraction of an accidental such as ^/ or _3/4: so many semitones
// from the natural note.
func (s *scanner) microtone(note *Note) {
	if c := s.peek(0); c != '/' && (c < '0' || c > '9') {
		return
	}
	f := s.length()
	note.Microtone = float64(f.Num) / float64(f.Den)
	if *note.Accidental < 0 {
		note.Microtone = -note.Microtone
	}
	natural := 0
	note.Accidental = &natural
}

// length reads 2, /2, 3/2, / or //.
func (s *scanner) length() Fraction {
	start := s.i
	f := Fraction{1, 1}
	if n, ok := s.number(); ok {
		f.Num = n
	}
	for s.peek(0) == '/' {
		s.i++
		den, ok := s.number()
		if !ok {
			den = 2
		}
		f.Den = min(f.Den*max(den, 0), maxPart+1)
	}
	if f.Num < 1 || f.Den < 1 || f.Num > maxPart || f.Den > maxPart {
		s.p.diag.fail(s.at(start), "%s is not a length", s.text[start:s.i])
		return Fraction{1, 1}
	}
	return f
}

// number reads digits; ok is false when there are none. Large numbers come
// back as maxPart+1.
func (s *scanner) number() (n int, ok bool) {
	for ; s.peek(0) >= '0' && s.peek(0) <= '9'; s.i++ {
		n = min(10*n+int(s.peek(0)-'0'), maxPart+1)
		ok = true
	}
	return n, ok
}

func (s *scanner) rest() {
	start := s.i
	c := s.peek(0)
	s.i++
	r := &Rest{Length: s.length(), Bars: c < 'a', Invisible: c|0x20 == 'x'}
	r.Place = s.place("rest", start)
	if r.Bars && (r.Length.Den != 1 || r.Length.Num > 1000) {
		s.p.diag.fail(r.Position, "a rest of %s bars", r.Length)
		r.Length = Fraction{1, 1}
	}
	s.p.add(r)
	s.last = nil
}

// broken reads > and <.
func (s *scanner) broken() {
	start := s.i
	dots := s.take(s.text[s.i : s.i+1])
	if dots > 3 {
		s.p.diag.fail(s.at(start), "a rhythm broken %d times", dots)
		dots = 3
	}
	if s.text[start] == '<' {
		dots = -dots
	}
	s.p.add(&BrokenRhythm{Place: s.place("broken", start), Dots: dots})
}

// tie ties the note or chord before it.
func (s *scanner) tie() {
	at := s.at(s.i)
	s.i++
	switch last := s.last.(type) {
	case *Note:
		last.Tie = true
	case *Chord:
		last.Tie = true
	default:
		s.p.diag.warn(at, "a tie without a note before it")
	}
}

func (s *scanner) overlay() {
	start := s.i
	s.take("&")
	s.p.add(&Overlay{s.place("overlay", start)})
	s.last = nil
}

// dot reads a dotted bar line, slur or tie, or the dot of a staccato note.
func (s *scanner) dot() {
	s.i++
	if c := s.peek(0); c != '|' && c != '(' && c != ')' && c != '-' {
		s.mark("decoration", s.i-1, ".", s.i-1)
	}
}

// mark adds a decoration, chord symbol or annotation whose text begins at a byte.
func (s *scanner) mark(class string, start int, text string, textStart int) {
	s.p.add(&Mark{Place: s.place("mark", start), Class: class, Text: text, textStart: s.line.offset + textStart})
}

// quoted reads "Am" or "^slowly".
func (s *scanner) quoted() {
	start := s.i
	size := strings.IndexByte(s.text[start+1:], '"')
	if size < 0 {
		s.p.diag.fail(s.at(start), `a " that is not closed`)
		s.i = len(s.text)
		return
	}
	s.i += size + 2
	text := s.text[start+1 : s.i-1]
	if text != "" && strings.IndexByte("^_<>@", text[0]) >= 0 {
		s.mark("annotation", start, text[1:], start+2)
		return
	}
	s.mark("chord_symbol", start, text, start+1)
}

// decoration reads !trill! or the old +trill+. A lone ! is an old line break.
func (s *scanner) decoration(quote byte) {
	start := s.i
	size := strings.IndexByte(s.text[start+1:], quote)
	if size < 0 || strings.ContainsAny(s.text[start+1:start+1+size], " |[]:") {
		if quote == '+' {
			s.p.diag.fail(s.at(start), "unexpected '+'")
		}
		s.i++
		return
	}
	s.i += size + 2
	s.mark("decoration", start, s.text[start+1:s.i-1], start+1)
}

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
