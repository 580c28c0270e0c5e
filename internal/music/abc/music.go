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
