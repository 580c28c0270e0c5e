package abc

import (
	"strconv"
	"strings"
)

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
