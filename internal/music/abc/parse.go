package abc

import (
	"cmp"
	"slices"
	"strings"
)

// parser reads one tune after another from the lines that are left.
type parser struct {
	lines []line
	diag  Diagnostics
	out   *Tune
	voice *Voice

	inBody   bool
	implicit bool // the only voice was made without a V: field
	unitSet  bool // an L: field was there
	sawMusic bool
	slurs    int

	symbols  map[byte]string // of U: fields
	macros   []macro
	expanded int // bytes that macros made
}

// newParser returns nil for a text that is too long.
func newParser(text string) *parser {
	if len(text) > MaxText {
		return nil
	}
	return &parser{lines: splitLines(text)}
}

func newTune() *Tune {
	return &Tune{Unit: Fraction{1, 8}, Voices: []*Voice{{ID: "1"}}}
}

// more reports whether another tune follows, and skips what is before it.
func (p *parser) more() bool {
	for len(p.lines) > 0 && !strings.HasPrefix(p.lines[0].text, "X:") {
		p.lines = p.lines[1:]
	}
	return len(p.lines) > 0
}

// tune reads the next tune: from its first field to the next empty line or the
// next X: field.
func (p *parser) tune() {
	*p = parser{lines: p.lines, diag: p.diag, out: newTune()}
	p.out.Voices = nil
	first := p.begin()
	for len(p.lines) > 0 {
		l := p.lines[0]
		if l.blank() || l.number != first.number && strings.HasPrefix(l.text, "X:") {
			break
		}
		p.lines = p.lines[1:]
		p.line(l)
	}
	p.end(first)
}

// begin skips what is before the tune and reads the file header, whose fields
// hold for every tune.
func (p *parser) begin() (first line) {
	all := p.lines
	if p.more() {
		p.fileHeader(all[:len(all)-len(p.lines)])
		return p.lines[0]
	}
	p.lines = all
	for len(p.lines) > 0 && (p.lines[0].blank() || strings.HasPrefix(p.lines[0].text, "%") && !strings.HasPrefix(p.lines[0].text, "%%")) {
		p.lines = p.lines[1:]
	}
	if len(p.lines) == 0 {
		p.diag.fail(Position{1, 1}, "there is no tune")
		return line{number: 1}
	}
	p.diag.warn(p.lines[0].at(0), "a tune should begin with an X: field")
	return p.lines[0]
}

// fileHeader reads the fields before the first tune; text between is left alone.
func (p *parser) fileHeader(lines []line) {
	for _, l := range lines {
		if name, _, _, ok := l.field(); ok && strings.IndexByte("CLMQIUm", name) >= 0 || strings.HasPrefix(l.text, "%%") {
			p.line(l)
		}
	}
}

// line reads one line of a tune.
func (p *parser) line(l line) {
	name, value, start, ok := l.field()
	switch {
	case strings.HasPrefix(l.text, "%%"):
		text, _ := trimmed(uncommented(l.text[2:]), 2)
		p.add(newDirective(p.place(l, "directive", 0, len(l.text)), text))
	case strings.HasPrefix(strings.TrimLeft(l.text, " \t"), "%"):
	case ok:
		f := &Field{Place: p.place(l, "field", 0, len(l.text)), Name: string(name), Value: value, valueStart: l.offset + start}
		p.field(f)
	case !p.inBody:
		p.diag.fail(l.at(0), "music before the K: field that ends the header")
		p.startBody()
		p.music(l)
	default:
		p.music(l)
	}
}

// place is where the bytes from start to end of a line are.
func (p *parser) place(l line, kind string, start, end int) Place {
	return Place{Kind: kind, Position: l.at(start), start: l.offset + start, end: l.offset + end}
}

// newDirective splits "MIDI program 40".
func newDirective(at Place, text string) *Directive {
	at.Kind = "directive"
	if value, ok := strings.CutPrefix(text, "MIDI"); ok { // an inline field may have [I:MIDI=program 40]
		text = "MIDI " + strings.TrimPrefix(strings.TrimLeft(value, " "), "=")
	}
	name, value, _ := strings.Cut(text, " ")
	return &Directive{Place: at, Name: name, Value: strings.TrimSpace(value)}
}

// add puts an item into the header or the body and its voice.
func (p *parser) add(item Item) {
	if !p.inBody {
		p.out.Header = append(p.out.Header, item)
		if _, ok := item.(*Directive); ok && p.voice != nil {
			p.voice.Items = append(p.voice.Items, item)
		}
		return
	}
	p.out.Body = append(p.out.Body, item)
	p.voice.Items = append(p.voice.Items, item)
}

// startBody ends the header.
func (p *parser) startBody() {
	p.inBody = true
	if !p.unitSet {
		p.out.Unit = p.out.Meter.unit()
	}
	p.needVoice()
	p.voice = p.out.Voices[0]
}

// needVoice makes sure that there is a voice.
func (p *parser) needVoice() {
	if len(p.out.Voices) == 0 {
		p.out.Voices = []*Voice{{ID: "1"}}
		p.implicit = true
	}
}

// end checks the tune as a whole.
func (p *parser) end(first line) {
	if !p.inBody {
		if len(p.diag.Errors) == 0 {
			p.diag.fail(first.at(0), "no K: field ends the header")
		}
		p.startBody()
	}
	if len(p.out.Titles) == 0 {
		p.diag.warn(first.at(0), "the tune has no title: a T: field should follow X:")
	}
	if !p.sawMusic {
		p.silent(first)
	}
	if p.slurs > 0 {
		p.diag.warn(first.at(0), "%d slurs are not closed", p.slurs)
	}
	for _, v := range p.out.Voices {
		v.steps = score(p.out, v, &p.diag)
	}
}

// silent warns of a tune without notes. A common cause is an empty line before
// the notes.
func (p *parser) silent(first line) {
	for i, l := range p.lines {
		if _, _, _, field := l.field(); !l.blank() && !field {
			p.diag.warn(p.lines[0].at(0), "the tune has no notes: this empty line ends it before line %d", p.lines[i].number)
			return
		}
		if strings.HasPrefix(l.text, "X:") {
			break
		}
	}
	p.diag.warn(first.at(0), "the tune has no notes")
}

// known are the letters of fields; those that do not affect the sound are stored
// unchanged.
const known = "ABCDFGHIKLMNOPQRSTUVWXZmrsw+"

// field handles one field of the header or the body.
func (p *parser) field(f *Field) {
	if !strings.Contains(known, f.Name) {
		p.diag.warn(f.Position, "there is no %s: field", f.Name)
	}
	switch f.Name {
	case "X":
		p.out.Number = f.Value
		if _, ok := parseInt(f.Value); !ok {
			p.diag.warn(f.Position, "X: should be a number, not %q", f.Value)
		}
	case "T":
		if !p.inBody {
			p.out.Titles = append(p.out.Titles, f.Value)
		}
	case "C":
		p.composer(f.Value)
	case "U":
		p.symbol(f)
	case "m":
		p.macro(f)
	case "I":
		p.add(newDirective(f.Place, f.Value))
		return
	case "V":
		p.switchVoice(f)
		return
	case "K", "L", "M", "Q", "P":
		p.musical(f)
		return
	}
	p.add(f)
}

func (p *parser) composer(name string) {
	if p.out.Composer != "" {
		name = p.out.Composer + ", " + name
	}
	p.out.Composer = name
}

// musical checks a field that affects the score. In the header it sets the
// tune's own value; in the body the score reads it from the voice's items.
func (p *parser) musical(f *Field) {
	if !p.apply(f) {
		p.diag.fail(f.Position, "%s: cannot be %q; %s", f.Name, f.Value, examples[f.Name])
		return
	}
	p.add(f)
	if f.Name == "K" && !f.Inline && !p.inBody {
		p.startBody()
	}
}

// apply applies a field; it reports whether its value is valid.
func (p *parser) apply(f *Field) (ok bool) {
	switch f.Name {
	case "K":
		return p.key(f)
	case "L":
		var unit Fraction
		if unit, ok = parseUnit(f.Value); ok && !p.inBody {
			p.out.Unit, p.unitSet = unit, true
		}
		return ok
	case "M":
		var meter Meter
		if meter, ok = parseMeter(f.Value); ok && !p.inBody {
			p.out.Meter = meter
		}
		return ok
	case "Q":
		return p.tempo(f)
	case "P":
		p.parts(f)
		return true
	}
	return false
}

// parts sets the order of parts, which only the header gives.
func (p *parser) parts(f *Field) {
	if p.inBody {
		return
	}
	p.out.Parts = f.Value
	if _, fine := expandParts(f.Value); !fine {
		p.diag.warn(f.Position, "P: %q is not an order of parts and is ignored", f.Value)
	}
}

// examples show what a field should look like.
var examples = map[string]string{
	"K": "a key looks like G, F#m, Bb or D mix",
	"L": "a unit note length looks like 1/8",
	"M": "a meter looks like 4/4, 6/8, C or none",
	"Q": "a tempo looks like 1/4=120",
}

func (p *parser) key(f *Field) bool {
	key, ok := parseKey(f.Value)
	if !ok {
		if !p.inBody { // the header ends here in any case
			p.startBody()
		}
		return false
	}
	if p.inBody {
		return true
	}
	p.out.Key = key
	s := parseProperties(f.Value)
	p.needVoice()
	for _, v := range p.out.Voices {
		if v.Octave == 0 && v.Transpose == 0 && !v.Percussion {
			v.apply(s)
		}
	}
	return true
}

func (p *parser) tempo(f *Field) bool {
	unit := p.out.Unit
	if !p.unitSet {
		unit = p.out.Meter.unit()
	}
	tempo, ok := parseTempo(f.Value, unit)
	if ok && !p.inBody {
		p.out.Tempo = &tempo
	}
	return ok
}

// switchVoice continues with the voice that a V: field names, which may be new.
func (p *parser) switchVoice(f *Field) {
	id, properties, _ := strings.Cut(f.Value, " ")
	if id == "" {
		p.diag.fail(f.Position, "V: names no voice")
		return
	}
	p.voice = p.voiceNamed(f, id)
	p.voice.apply(parseProperties(properties))
	p.add(f)
}

// maxVoices is the largest number of voices of a tune.
const maxVoices = 64

// voiceNamed finds or makes a voice. The voice of music before the first V: field
// is the first one.
func (p *parser) voiceNamed(f *Field, id string) *Voice {
	for _, v := range p.out.Voices {
		if v.ID == id {
			return v
		}
	}
	if p.implicit && !p.sawMusic {
		p.implicit = false
		p.out.Voices[0].ID = id
		return p.out.Voices[0]
	}
	if len(p.out.Voices) >= maxVoices {
		p.diag.fail(f.Position, "more than %d voices", maxVoices)
		return p.out.Voices[0]
	}
	v := &Voice{ID: id}
	if p.inBody {
		v.apply(parseProperties(p.headerKey()))
	}
	p.out.Voices = append(p.out.Voices, v)
	return v
}

// headerKey is the value of the K: field that ended the header.
func (p *parser) headerKey() string {
	for _, item := range p.out.Header {
		if f, ok := item.(*Field); ok && f.Name == "K" {
			return f.Value
		}
	}
	return ""
}

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
