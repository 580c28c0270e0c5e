package accompany

import (
	"strconv"
	"strings"
)

// Pattern is what is played in each bar: a sequence of strokes that together fill it.
type Pattern struct {
	Strokes []Stroke
	Total   int // the sum of their lengths
}

// Stroke is one letter of a pattern with its length.
type Stroke struct {
	Letter byte
	At     int // the lengths before it
	Length int
}

// maxStrokes and maxLength limit a pattern.
const (
	maxStrokes = 200
	maxLength  = 64
)

// ParsePattern reads letters from set, each with an optional length: "fzc2".
func ParsePattern(text, set string) (p Pattern, ok bool) {
	for i := 0; i < len(text); {
		if strings.IndexByte(set, text[i]) < 0 || len(p.Strokes) >= maxStrokes {
			return Pattern{}, false
		}
		length, size := strokeLength(text[i+1:])
		if length < 1 || length > maxLength {
			return Pattern{}, false
		}
		p.Strokes = append(p.Strokes, Stroke{Letter: text[i], At: p.Total, Length: length})
		p.Total += length
		i += 1 + size
	}
	return p, p.Total > 0
}

// strokeLength reads the length after a letter, 1 if there is none; it is 0 if it is
// not one.
func strokeLength(text string) (length, size int) {
	for size < len(text) && text[size] >= '0' && text[size] <= '9' {
		size++
	}
	if size == 0 {
		return 1, 0
	}
	length, err := strconv.Atoi(text[:size])
	if err != nil {
		return 0, size
	}
	return length, size
}

// ChordLetters are the strokes of %%MIDI gchord: silence, fundamental, chord, both, and
// single notes of the chord, an octave lower in capitals.
const ChordLetters = "zfcbghijGHIJ"

// DrumLetters are the strokes of %%MIDI drum.
const DrumLetters = "zd"

// Default is the pattern of chords that a meter has by itself.
func Default(beats, den int) (Pattern, bool) {
	text := ""
	switch {
	case beats == 2 && den == 4:
		text = "fzcz"
	case beats == 4 && den == 4, beats == 2 && den == 2:
		text = "fzczfzcz"
	case beats == 3 && den >= 4:
		text = "fzczcz"
	case beats == 6 && den == 4:
		text = "fzczfzczfzcz"
	case beats%3 == 0 && den == 8:
		text = strings.Repeat("fzc", beats/3)
	case beats == 5 && den >= 4:
		text = "fzbcz"
	case beats == 7 && den >= 4:
		text = "fzbczcz"
	}
	return ParsePattern(text, ChordLetters)
}

// Notes are the notes of a chord that a stroke plays; bass says that the fundamental
// sounds.
func (s Stroke) Notes(c Chord) (notes []int, bass bool) {
	switch s.Letter {
	case 'f':
		return nil, true
	case 'c':
		return c.Notes, len(c.Notes) == 0
	case 'b':
		return c.Notes, true
	}
	at := strings.IndexByte("ghij", s.Letter|0x20)
	if at < 0 || at >= len(c.Notes) {
		return nil, false
	}
	note := c.Notes[at]
	if s.Letter < 'a' {
		note -= 12
	}
	return []int{note}, false
}
