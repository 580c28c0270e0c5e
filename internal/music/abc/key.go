package abc

import (
	"strconv"
	"strings"
)

// Key is what a K: field says about pitch.
type Key struct {
	Tonic  string         `json:"tonic"`                // such as F#; "" for none
	Mode   string         `json:"mode"`                 // major, minor, dorian …; "" for none
	Sharps int            `json:"sharps"`               // of the key signature; flats are negative
	Extra  map[string]int `json:"accidentals,omitzero"` // letters with accidentals of their own

	tonicEnd int      // length of the tonic, with which the field's value begins
	pipes    bool     // HP or Hp: the signature of bagpipes
	explicit bool     // exp: only the accidentals listed
	silent   bool     // the field is about the clef only and leaves the key as it is
	listed   []global // the accidentals listed, for rewriting
}

// global is one accidental listed in a K: field, with its byte offsets in the value.
type global struct {
	letter     byte
	alter      int
	start, end int
}

// mode is a scale: its name, and its place on the line of fifths relative to major.
type mode struct {
	name   string
	sharps int
}

// modes lists the names a K: field may use; any three letters or more will do.
var modes = []mode{
	{"major", 0}, {"minor", -3}, {"dorian", -2}, {"phrygian", -4}, {"lydian", 1}, {"mixolydian", -1}, {"locrian", -5},
	{"ionian", 0}, {"aeolian", -3},
}

// String reads "G major", "F# dorian" or "none".
func (k Key) String() string {
	switch {
	case k.pipes:
		return "HP"
	case k.Tonic == "":
		return "none"
	}
	return k.Tonic + " " + k.Mode
}

// alter is what the signature does to a letter.
func (k Key) alter(letter byte) int {
	if alter, ok := k.Extra[string(letter)]; ok {
		return alter
	}
	if k.explicit {
		return 0
	}
	// F is sharp from one sharp on, C from two; B is flat from one flat on.
	return floorDiv(k.Sharps+6-strings.IndexByte(fifths, letter), 7)
}

// parseKey reads the pitch part of a K: value. Words it does not know (clefs,
// transpose=…) are left to the voice. ok is false when a tonic is malformed.
func parseKey(value string) (key Key, ok bool) {
	var rest string
	switch {
	case strings.HasPrefix(value, "HP"), strings.HasPrefix(value, "Hp"):
		key.pipes, key.Sharps, key.tonicEnd = true, 2, 2
		rest = value[2:]
	case value == "none" || strings.HasPrefix(value, "none "):
		rest = value[4:]
	default:
		tonic, n := parseName(value)
		if n == 0 {
			key.list(value, 0)
			key.silent = len(key.listed) == 0 && isProperty(value)
			return key, value == "" || len(key.listed) > 0 || key.silent
		}
		mode, length, known := parseMode(value[n:])
		if !known {
			return Key{}, false
		}
		key.Tonic, key.tonicEnd = tonic.name(), n
		key.Mode, key.Sharps = mode.name, tonic.place()+mode.sharps
		rest = value[n+length:]
	}
	key.list(rest, len(value)-len(rest))
	return key, key.Sharps >= -8 && key.Sharps <= 8
}

// parseMode reads a mode at the start of text, perhaps after spaces, and
// returns how many bytes it took; without a mode the key is major. known is false
// if something else follows the tonic directly.
func parseMode(text string) (m mode, n int, known bool) {
	trimmed := strings.TrimLeft(text, " \t")
	spaces := len(text) - len(trimmed)
	word := trimmed
	if i := strings.IndexFunc(word, func(r rune) bool { return r < 'A' || r > 'z' || r > 'Z' && r < 'a' }); i >= 0 {
		word = word[:i]
	}
	n = spaces + len(word)
	lower := strings.ToLower(word)
	if lower == "m" {
		return modes[1], n, true
	}
	for _, m := range modes {
		if len(lower) >= 3 && strings.HasPrefix(m.name, lower) {
			return m.canonical(), n, true
		}
	}
	return modes[0], 0, spaces > 0 || trimmed == "" || strings.IndexByte("^_=", trimmed[0]) >= 0
}

// canonical gives the church names of major and minor their usual ones.
func (m mode) canonical() mode {
	switch m.name {
	case "ionian":
		return modes[0]
	case "aeolian":
		return modes[1]
	}
	return m
}

// isProperty reports whether a K: value is about clefs and such only.
func isProperty(value string) bool {
	word, _, _ := strings.Cut(value, " ")
	return strings.Contains(word, "=") || clefs[strings.TrimRight(word, "+-0123456789")]
}

// list reads "exp" and the accidentals after the mode; offset is where text
// begins in the value.
func (k *Key) list(text string, offset int) {
	for i := 0; i < len(text); {
		if text[i] == ' ' || text[i] == '\t' {
			i++
			continue
		}
		end := i
		for end < len(text) && text[end] != ' ' && text[end] != '\t' {
			end++
		}
		if text[i:end] == "exp" {
			k.explicit = true
		} else {
			k.listWord(text[i:end], offset+i)
		}
		i = end
	}
}

// listWord reads accidentals such as ^f or _b=c.
func (k *Key) listWord(word string, offset int) {
	for i := 0; i < len(word); {
		alter, n := parseAccidental(word[i:])
		if n == 0 || i+n >= len(word) {
			return
		}
		letter := word[i+n] &^ 0x20
		if letter < 'A' || letter > 'G' {
			return
		}
		if k.Extra == nil {
			k.Extra = map[string]int{}
		}
		k.Extra[string(letter)] = alter
		k.listed = append(k.listed, global{letter, alter, offset + i, offset + i + n + 1})
		i += n + 1
	}
}

// parseAccidental reads ^, ^^, _, __ or = and returns how many bytes it took.
func parseAccidental(text string) (alter, n int) {
	for i, sign := range accidentals {
		if strings.HasPrefix(text, sign) && len(sign) > n {
			alter, n = i-2, len(sign)
		}
	}
	return alter, n
}

// parseInt reads a small decimal number.
func parseInt(text string) (int, bool) {
	v, err := strconv.Atoi(text)
	return v, err == nil && v >= -maxPart && v <= maxPart
}

// accidentalMemory computes the meaning of a note without accidental: it stores
// the key, the accidentals of the bar, and those that a tie carries over.
type accidentalMemory struct {
	key    Key
	scope  string           // how far accidentals reach: not, octave, or all octaves when it is anything else
	alters map[spelling]int // of this bar; see reach
	tied   map[spelling]int // of notes tied to the next one, by letter and octave
}

// reach returns the pitches that an accidental applies to, as a key of alters.
func (m *accidentalMemory) reach(s spelling) spelling {
	s.alter = 0
	if m.scope != "octave" {
		s.octave = 0
	}
	return s
}

// implied returns the alteration of a note written without accidental.
func (m *accidentalMemory) implied(letter byte, octave int) int {
	s := spelling{letter: letter, octave: octave}
	if alter, ok := m.alters[m.reach(s)]; ok {
		return alter
	}
	if alter, ok := m.tied[s]; ok {
		return alter
	}
	return m.key.alter(letter)
}

// write records an accidental written before a note.
func (m *accidentalMemory) write(s spelling) {
	if m.scope == "not" {
		return
	}
	if m.alters == nil {
		m.alters = map[spelling]int{}
	}
	m.alters[m.reach(s)] = s.alter
}

// pitch computes the spelling of a note.
func (m *accidentalMemory) pitch(n *Note) spelling {
	s := spelling{letter: n.Letter[0], octave: n.Octave}
	if n.Accidental == nil {
		s.alter = m.implied(s.letter, s.octave)
		return s
	}
	s.alter = *n.Accidental
	m.write(s)
	return s
}

// resolve computes the pitches of a note or chord, and carries over ties; no notes
// are a rest.
func (m *accidentalMemory) resolve(notes []*Note, tie bool) []spelling {
	pitches := make([]spelling, len(notes))
	for i, n := range notes {
		pitches[i] = m.pitch(n)
	}
	m.carry(notes, pitches, tie)
	return pitches
}

// carry replaces the notes that are tied to the next note.
func (m *accidentalMemory) carry(notes []*Note, pitches []spelling, tie bool) {
	m.tied = nil
	for i, n := range notes {
		if !tie && !n.Tie {
			continue
		}
		if m.tied == nil {
			m.tied = map[spelling]int{}
		}
		s := pitches[i]
		m.tied[spelling{letter: s.letter, octave: s.octave}] = s.alter
	}
}

// bar clears the accidentals of the bar.
func (m *accidentalMemory) bar() { m.alters = nil }
