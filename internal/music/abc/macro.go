package abc

import (
	"cmp"
	"slices"
	"strings"
)

// macro is an m: field: text that stands for other text. In a transposing one the
// letter n of the target is any note, and h to z are the notes around it.
type macro struct {
	before, after string // the target, around its n
	transposing   bool
	text          string
}

// maxMacros and maxMacro limit the macros of a tune and their length.
const (
	maxMacros = 32
	maxMacro  = 200
)

// macro reads "~n3 = n{o}n{m}n".
func (p *parser) macro(f *Field) {
	target, text, ok := strings.Cut(f.Value, "=")
	m := macro{before: strings.TrimSpace(target), text: strings.TrimSpace(text)}
	if !ok || len(m.before) < 2 || len(f.Value) > maxMacro || len(p.macros) >= maxMacros {
		p.diag.warn(f.Position, "m: %q is not a macro and is ignored; one looks like ~G3 = G{A}G{F}G", f.Value)
		return
	}
	if before, after, found := strings.Cut(m.before, "n"); found {
		m.before, m.after, m.transposing = before, after, true
	}
	p.macros = append(p.macros, m)
	slices.SortStableFunc(p.macros, func(a, b macro) int { return cmp.Compare(len(b.before+b.after), len(a.before+a.after)) })
}

// match reports how many bytes of text the macro stands for, and for which.
func (m macro) match(text string) (expansion string, size int) {
	rest, ok := strings.CutPrefix(text, m.before)
	if !ok {
		return "", 0
	}
	if !m.transposing {
		return m.text, len(m.before)
	}
	if rest == "" || !isNote(rest[0]) {
		return "", 0
	}
	s, n := pitchAt(rest)
	if !strings.HasPrefix(rest[n:], m.after) || s.octave < -5 || s.octave > 5 {
		return "", 0
	}
	return m.around(s), len(m.before) + n + len(m.after)
}

// pitchAt reads the letter and the octave marks at the start of text.
func pitchAt(text string) (s spelling, size int) {
	s.letter = text[0] &^ 0x20
	if text[0] >= 'a' {
		s.octave = 1
	}
	for size = 1; size < len(text) && oneOf("',", text[size]); size++ {
		s.octave += 1 - 2*strings.IndexByte("',", text[size])
	}
	return s, size
}

// around writes the macro's text with its notes relative to one.
func (m macro) around(s spelling) string {
	var out strings.Builder
	for i := range len(m.text) {
		c := m.text[i]
		if c < 'h' || c > 'z' {
			out.WriteByte(c)
			continue
		}
		at := strings.IndexByte(letters, s.letter) + int(c) - 'n'
		out.WriteString(spelling{letter: letters[mod(at, 7)], octave: s.octave + floorDiv(at, 7)}.String())
	}
	return out.String()
}

// macro expands a macro at the next byte. Its items are where the macro was called.
func (s *scanner) macro() bool {
	if s.call != nil {
		return false
	}
	for _, m := range s.p.macros {
		text, size := m.match(s.text[s.i:])
		if size == 0 {
			continue
		}
		start := s.i
		s.i += size
		if s.p.expanded += len(text); s.p.expanded > MaxText {
			s.p.diag.fail(s.at(start), "the macros of the tune make more than %d bytes", MaxText)
			return true
		}
		place := s.place("", start)
		inner := &scanner{p: s.p, line: s.line, text: text, call: &place, last: s.last}
		for inner.i < len(inner.text) {
			inner.next()
		}
		s.last = inner.last
		s.p.out.macros = true
		return true
	}
	return false
}

// symbol reads an U: field: "T = !trill!".
func (p *parser) symbol(f *Field) {
	letter, text, ok := strings.Cut(f.Value, "=")
	letter, text = strings.TrimSpace(letter), strings.TrimSpace(text)
	if !ok || len(letter) != 1 || !isDecoration(letter[0]) || text == "" {
		p.diag.warn(f.Position, "U: %q is not a symbol and is ignored; one looks like T = !trill!", f.Value)
		return
	}
	if p.symbols == nil {
		p.symbols = map[byte]string{}
	}
	p.symbols[letter[0]] = text
}

// letter reads a decoration of one letter, which an U: field may have given a meaning.
func (s *scanner) letter() {
	start := s.i
	s.i++
	text, own := s.p.symbols[s.text[start]]
	switch {
	case !own:
		s.mark("decoration", start, s.text[start:s.i], start)
	case len(text) > 2 && text[0] == '"' && strings.IndexByte("^_<>@", text[1]) >= 0:
		s.mark("annotation", start, strings.Trim(text[2:], `"`), start)
	default:
		s.mark("decoration", start, strings.Trim(text, "!+"), start)
	}
}
