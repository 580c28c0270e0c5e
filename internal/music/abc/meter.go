package abc

import (
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/music/abc/accompany"
)

// Meter is what an M: field says.
type Meter struct {
	Text string `json:"text"` // as written, such as 6/8, C or none
	Beat int    `json:"beat"` // how many notes of Den fill a bar; 0: free
	Den  int    `json:"den"`
}

// free reports whether bars have no set length.
func (m Meter) free() bool { return m.Beat == 0 }

// bar is the length of a bar in time units; free meters count as 4/4.
func (m Meter) bar() int64 {
	if m.free() {
		return whole
	}
	return scale(whole, m.Beat, m.Den)
}

// pattern is how chords are played in the meter.
func (m Meter) pattern() (accompany.Pattern, bool) {
	if m.free() {
		m.Beat, m.Den = 4, 4
	}
	return accompany.Default(m.Beat, m.Den)
}

// compound reports whether beats have three parts: 6/8, 9/8, 12/8 and their like.
func (m Meter) compound() bool { return m.Beat%3 == 0 && m.Beat > 3 && m.Den >= 4 }

// unit is the unit note length that goes with the meter when no L: field says
// another: a sixteenth for meters shorter than 3/4, else an eighth.
func (m Meter) unit() Fraction {
	if !m.free() && 4*m.Beat < 3*m.Den {
		return Fraction{1, 16}
	}
	return Fraction{1, 8}
}

// parseMeter reads an M: value.
func parseMeter(value string) (m Meter, ok bool) {
	m.Text = value
	switch value {
	case "none", "":
		return m, true
	case "C":
		m.Beat, m.Den = 4, 4
		return m, true
	case "C|":
		m.Beat, m.Den = 2, 2
		return m, true
	}
	beats, den, found := strings.Cut(strings.ReplaceAll(value, " ", ""), "/")
	if !found {
		return m, false
	}
	for beat := range strings.SplitSeq(strings.Trim(beats, "()"), "+") {
		n, ok := parseInt(beat)
		if !ok || n < 1 {
			return m, false
		}
		m.Beat += n
	}
	m.Den, ok = parseInt(den)
	return m, ok && powerOfTwo(m.Den) && m.Beat <= 255
}

// parseUnit reads an L: value such as 1/8.
func parseUnit(value string) (f Fraction, ok bool) {
	num, den, found := strings.Cut(value, "/")
	if !found {
		den = "1"
	}
	var okNum, okDen bool
	f.Num, okNum = parseInt(strings.TrimSpace(num))
	f.Den, okDen = parseInt(strings.TrimSpace(den))
	return f, okNum && okDen && f.Num > 0 && f.Num <= 64 && powerOfTwo(f.Den)
}

func powerOfTwo(n int) bool { return n > 0 && n&(n-1) == 0 && n <= 512 }

// Tempo is what a Q: field says: how many beats a minute has.
type Tempo struct {
	BPM  float64  `json:"bpm"`
	Beat Fraction `json:"beat"`           // the part of a whole note that is a beat
	Text string   `json:"text,omitempty"` // such as Allegro
}

// defaultTempo is the tempo of a tune without Q: field.
var defaultTempo = Tempo{BPM: 120, Beat: Fraction{1, 4}}

// quarters is the tempo in quarter notes per minute.
func (t Tempo) quarters() float64 { return t.BPM * 4 * float64(t.Beat.Num) / float64(t.Beat.Den) }

// words are the speeds of tempo names, in quarter notes per minute.
var words = map[string]float64{
	"larghissimo": 20, "adagissimo": 30, "lento": 50, "largo": 50, "adagio": 60, "larghetto": 63, "adagietto": 74,
	"andante": 88, "andantino": 96, "andante moderato": 100, "moderato": 114, "allegretto": 116,
	"allegro moderato": 120, "allegro": 144, "vivace": 168, "vivo": 180, "presto": 188, "allegrissimo": 208, "prestissimo": 210,
}

// parseTempo reads a Q: value: 1/4=120, "Allegro" 1/4=120, "Allegro", or the
// old 120 and C=120, whose beat is the unit note length.
func parseTempo(value string, unit Fraction) (t Tempo, ok bool) {
	t = Tempo{Beat: unit}
	if open := strings.IndexByte(value, '"'); open >= 0 {
		size := strings.IndexByte(value[open+1:], '"')
		if size < 0 {
			return t, false
		}
		t.Text = value[open+1 : open+1+size]
		value = value[:open] + value[open+size+2:]
	}
	value = strings.TrimSpace(value)
	if value == "" {
		speed, known := words[strings.ToLower(t.Text)]
		if !known {
			speed = defaultTempo.BPM
		}
		t.Beat, t.BPM = defaultTempo.Beat, speed
		return t, t.Text != ""
	}
	if beats, speed, found := strings.Cut(value, "="); found {
		if t.Beat, ok = parseBeats(beats, unit); !ok {
			return t, false
		}
		value = strings.TrimSpace(speed)
	}
	bpm, err := strconv.ParseFloat(value, 64)
	t.BPM = bpm
	return t, err == nil && bpm >= 1 && bpm <= maxPart
}

// oldBeats reads how many units a beat has, default one.
func oldBeats(text string, unit Fraction) (beat Fraction, ok bool) {
	if text == "" {
		return unit, true
	}
	n, ok := parseInt(text)
	if !ok || n < 1 {
		return beat, false
	}
	return Fraction{unit.Num * n, unit.Den}, true
}

// parseBeats adds up the note lengths before the equals sign.
func parseBeats(text string, unit Fraction) (sum Fraction, ok bool) {
	text = strings.TrimSpace(text)
	if after, old := strings.CutPrefix(text, "C"); old {
		return oldBeats(after, unit)
	}
	sum = Fraction{0, 512}
	for part := range strings.FieldsSeq(text) {
		f, ok := parseUnit(part)
		if !ok {
			return sum, false
		}
		sum.Num += f.Num * (sum.Den / f.Den)
	}
	for sum.Num%2 == 0 && sum.Den > 1 && sum.Num > 0 {
		sum.Num, sum.Den = sum.Num/2, sum.Den/2
	}
	return sum, sum.Num > 0 && sum.Num < maxPart*512
}
