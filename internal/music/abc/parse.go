package abc

import "strings"

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
