package abc

import "strings"

// Pitches are spelled on the line of fifths: … Bb F C G D A E B F# …, with C at
// 0. A letter is seven places from its sharp, so that moving every note by the
// same number of places transposes without changing how intervals are spelled.

// fifths lists the letters without accidental, from place −1 on.
const fifths = "FCGDAEB"

// letters lists them from low to high.
const letters = "CDEFGAB"

// semitones is how far each letter of letters is above C.
var semitones = [7]int{0, 2, 4, 5, 7, 9, 11}

// spelling is a pitch as notation writes it.
type spelling struct {
	letter byte // C D E F G A B
	alter  int  // sharps positive, flats negative
	octave int  // 0 holds middle C
}

// place is the spelling's place on the line of fifths.
func (s spelling) place() int { return strings.IndexByte(fifths, s.letter) - 1 + 7*s.alter }

// midi is the note number; middle C is 60.
func (s spelling) midi() int {
	return 60 + 12*s.octave + semitones[strings.IndexByte(letters, s.letter)] + s.alter
}

// spell is the pitch with a note number, on a place of the line of fifths.
func spell(place, midi int) spelling {
	s := spelling{letter: fifths[mod(place+1, 7)], alter: floorDiv(place+1, 7)}
	s.octave = floorDiv(midi-s.alter-60, 12)
	return s
}

// String writes the pitch as ABC does: _B, c, d'. The accidental is left out.
func (s spelling) String() string {
	if s.octave >= 1 {
		return strings.ToLower(string(s.letter)) + strings.Repeat("'", s.octave-1)
	}
	return string(s.letter) + strings.Repeat(",", -s.octave)
}

// accidentals writes alterations from −2 to 2.
var accidentals = [5]string{"__", "_", "=", "^", "^^"}

// name writes a letter with # and b, as keys and chord symbols do.
func (s spelling) name() string {
	if s.alter < 0 {
		return string(s.letter) + strings.Repeat("b", -s.alter)
	}
	return string(s.letter) + strings.Repeat("#", s.alter)
}

// parseName reads a letter with # and b (or ♯ and ♭) at the start of text and
// returns how many bytes it took, none when there is no letter.
func parseName(text string) (s spelling, n int) {
	if text == "" || text[0] < 'A' || text[0] > 'G' {
		return spelling{}, 0
	}
	s.letter, n = text[0], 1
	for _, sign := range []struct {
		text  string
		alter int
	}{{"#", 1}, {"b", -1}, {"♯", 1}, {"♭", -1}} {
		if strings.HasPrefix(text[1:], sign.text) {
			s.alter = sign.alter
			return s, 1 + len(sign.text)
		}
	}
	return s, n
}

// nearest brings a place within accidentals that can be written, by a change
// of name that leaves the sound: C### becomes D#.
func nearest(place int) int {
	for place > 19 { // B## is 19
		place -= 12
	}
	for place < -15 { // Fbb is −15
		place += 12
	}
	return place
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func mod(a, b int) int { return a - b*floorDiv(a, b) }
