package abc

import "strings"

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
