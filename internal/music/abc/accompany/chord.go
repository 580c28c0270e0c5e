// Package accompany reads chord symbols such as "Am7/G" and the patterns in which
// abc2midi's %%MIDI gchord and %%MIDI drum directives play them.
package accompany

import "strings"

// Chord is the notes of a chord symbol. Pitches are MIDI note numbers.
type Chord struct {
	Bass  int   // the fundamental, or the note after a slash
	Notes []int // from the root up; empty for a single note such as "d"
}

// The octaves of a chord: C is 48 in a chord and 36 in the bass.
const (
	chordC = 48
	bassC  = 36
)

// intervals are the names of chords after the root, by semitones above it.
var intervals = map[string][]int{
	"": {0, 4, 7}, "maj": {0, 4, 7}, "M": {0, 4, 7},
	"m": {0, 3, 7}, "min": {0, 3, 7}, "-": {0, 3, 7},
	"7": {0, 4, 7, 10}, "m7": {0, 3, 7, 10}, "min7": {0, 3, 7, 10}, "-7": {0, 3, 7, 10},
	"maj7": {0, 4, 7, 11}, "M7": {0, 4, 7, 11}, "mM7": {0, 3, 7, 11},
	"6": {0, 4, 7, 9}, "m6": {0, 3, 7, 9}, "69": {0, 4, 7, 9, 14},
	"aug": {0, 4, 8}, "+": {0, 4, 8}, "aug7": {0, 4, 8, 10}, "+7": {0, 4, 8, 10},
	"dim": {0, 3, 6}, "o": {0, 3, 6}, "°": {0, 3, 6}, "dim7": {0, 3, 6, 9}, "o7": {0, 3, 6, 9}, "°7": {0, 3, 6, 9},
	"m7b5": {0, 3, 6, 10}, "ø": {0, 3, 6, 10}, "ø7": {0, 3, 6, 10},
	"9": {0, 4, 7, 10, 14}, "m9": {0, 3, 7, 10, 14}, "maj9": {0, 4, 7, 11, 14}, "M9": {0, 4, 7, 11, 14},
	"add9": {0, 4, 7, 14}, "7b9": {0, 4, 7, 10, 13}, "7#9": {0, 4, 7, 10, 15}, "dim9": {0, 3, 6, 9, 13},
	"11": {0, 4, 7, 10, 14, 17}, "m11": {0, 3, 7, 10, 14, 17}, "13": {0, 4, 7, 10, 14, 21},
	"sus": {0, 5, 7}, "sus4": {0, 5, 7}, "sus2": {0, 2, 7}, "sus9": {0, 2, 7},
	"7sus": {0, 5, 7, 10}, "7sus4": {0, 5, 7, 10}, "7sus9": {0, 2, 7, 10},
	"5": {0, 7},
}

// Kind says what a text in quotes is.
type Kind int

// The kinds of texts.
const (
	Known   Kind = iota // a chord
	Unknown             // a root with a name that is not known, played as a major chord
	Silence             // "N.C.": no chord from here on
	Text                // not a chord
)

// Parse reads a chord symbol. Own names, by their intervals, come before the usual ones.
func Parse(text string, own map[string][]int) (c Chord, kind Kind) {
	text, _, _ = strings.Cut(strings.TrimSpace(text), ";")
	if t := strings.ToUpper(strings.Trim(text, "().")); t == "N.C" || t == "NC" {
		return Chord{}, Silence
	}
	root, size, ok := pitch(text)
	if !ok {
		return Chord{}, Text
	}
	name, bass, slash := strings.Cut(text[size:], "/")
	c.Bass = bassC + root
	if text[0] >= 'a' {
		return c, Known
	}
	name = strings.Trim(strings.ReplaceAll(name, " ", ""), "()")
	steps, found := own[name]
	if !found {
		steps, found = intervals[name]
	}
	if !found {
		kind, steps = Unknown, intervals[""]
	}
	for _, step := range steps {
		c.Notes = append(c.Notes, chordC+root+step)
	}
	if slash {
		c.over(bass)
	}
	return c, kind
}

// over puts a note below the chord. If it is one of the chord's own notes, those below
// it move up an octave.
func (c *Chord) over(text string) {
	bass, _, ok := pitch(strings.TrimSpace(text))
	if !ok {
		return
	}
	c.Bass = bassC + bass
	at := -1
	for i, n := range c.Notes {
		if (n-bass)%12 == 0 {
			at = i
			break
		}
	}
	for i := range max(at, 0) {
		c.Notes[i] += 12
	}
}

// pitch reads a letter with # or b, in semitones above C.
func pitch(text string) (semitones, size int, ok bool) {
	if text == "" {
		return 0, 0, false
	}
	at := strings.IndexByte("C D EF G A B", text[0]&^0x20)
	if at < 0 || text[0] == ' ' {
		return 0, 0, false
	}
	for sign, alter := range map[string]int{"#": 1, "♯": 1, "b": -1, "♭": -1} {
		if strings.HasPrefix(text[1:], sign) {
			return at + alter, 1 + len(sign), true
		}
	}
	return at, 1, true
}
