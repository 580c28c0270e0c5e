package abc

import (
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
