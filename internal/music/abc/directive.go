package abc

import (
	"strings"

	"github.com/luanette/luanette/internal/music/abc/accompany"
)

// setting is a checked %%MIDI directive: its name, its numbers, and the words between.
type setting struct {
	name    string
	words   []string
	numbers []int
	pattern accompany.Pattern
	octave  int // of octave=1
}

// shapes are the directives that are played, with the least and the most numbers
// they have and the range of those.
var shapes = map[string]struct {
	least, most int
	low, high   int
}{
	"program": {1, 2, 0, 127}, "channel": {1, 1, 1, 16}, "transpose": {1, 1, -127, 127}, "rtranspose": {1, 1, -127, 127},
	"gchord": {0, 0, 0, 0}, "gchordon": {}, "gchordoff": {}, "gchordbars": {1, 1, 1, 16},
	"chordprog": {1, 1, 0, 127}, "bassprog": {1, 1, 0, 127}, "chordvol": {1, 1, 0, 127}, "bassvol": {1, 1, 0, 127},
	"chordname": {1, 6, -24, 48}, "drum": {0, 400, 0, 127}, "drumon": {}, "drumoff": {}, "drumbars": {1, 1, 1, 16},
	"beat": {3, 4, 0, 127}, "beatmod": {1, 1, -127, 127}, "beatstring": {}, "beataccents": {}, "nobeataccents": {},
	"deltaloudness": {1, 1, 0, 127}, "grace": {2, 2, 1, maxPart}, "gracedivider": {1, 1, 1, 64}, "ratio": {2, 2, 1, 64},
	"chordattack": {1, 1, 0, 480}, "fermatafixed": {}, "fermataproportional": {}, "trim": {2, 2, 0, maxPart},
	"control": {2, 2, 0, 127}, "drone": {5, 5, 0, 127}, "droneon": {}, "droneoff": {}, "nobarlines": {}, "barlines": {},
}

// settings reads the value of a MIDI directive: "program 40", or several as an inline
// field has them, "=program 40 MIDI=chordprog 24".
func (r *reader) settings(d *Directive) []setting {
	var list []setting
	for text := range strings.SplitSeq(d.Value, "MIDI") {
		words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(text), "="))
		if len(words) == 0 {
			continue
		}
		if s, ok := r.setting(d.Position, words); ok {
			list = append(list, s)
		}
	}
	return list
}

// setting checks one directive and warns if it cannot be played.
func (r *reader) setting(at Position, words []string) (s setting, ok bool) {
	s.name = words[0]
	shape, known := shapes[s.name]
	if !known {
		r.diag.warnOnce(at, "%%%%MIDI %s is not supported and has no effect", s.name)
		return s, false
	}
	for _, word := range words[1:] {
		s.word(word)
	}
	ok = s.text() && len(s.numbers) >= shape.least
	s.numbers = s.numbers[:min(len(s.numbers), shape.most)]
	for _, n := range s.numbers {
		ok = ok && n >= shape.low && n <= shape.high
	}
	if !ok {
		r.diag.warnOnce(at, "%%%%MIDI %s has no effect: its values are missing or out of range", strings.Join(words, " "))
	}
	return s, ok
}

// text reads the words of the directives that have some; it reports whether they are
// valid.
func (s *setting) text() (ok bool) {
	first := ""
	if len(s.words) > 0 {
		first = s.words[0]
	}
	switch s.name {
	case "gchord":
		s.pattern, ok = accompany.ParsePattern(first, accompany.ChordLetters)
		return ok || first == ""
	case "drum":
		s.pattern, ok = accompany.ParsePattern(first, accompany.DrumLetters)
		return ok
	case "beatstring":
		return first != "" && len(first) <= 64 && strings.Trim(first, "fmp") == ""
	case "chordname":
		return first != ""
	}
	return true
}

// word sorts one word of a directive: a number, a fraction, octave=1 or something else.
func (s *setting) word(word string) {
	if value, ok := strings.CutPrefix(word, "octave="); ok {
		if n, ok := parseInt(value); ok && n >= -2 && n <= 2 {
			s.octave = n
		}
		return
	}
	name := len(s.words) == 0 && s.name == "chordname" // "7" is the name of a chord
	for part := range strings.SplitSeq(word, "/") {
		n, ok := parseInt(part)
		if !ok || name {
			s.words = append(s.words, word)
			return
		}
		s.numbers = append(s.numbers, n)
	}
}

// directive applies what concerns pitches and times, and leaves the rest to the player.
func (r *reader) directive(d *Directive) {
	if scope, ok := d.scope(); ok {
		r.accidentals.scope = scope
		return
	}
	if d.Name == "MIDI" {
		for _, s := range r.settings(d) {
			r.set(&s)
		}
	}
}

// scope is how far accidentals reach from here on, if the directive changes it.
func (d *Directive) scope() (scope string, ok bool) {
	switch {
	case d.Name == "propagate-accidentals":
		return d.Value, true
	case d.Name == "MIDI" && d.Value == "nobarlines":
		return "not", true
	case d.Name == "MIDI" && d.Value == "barlines":
		return "", true
	}
	return "", false
}

func (r *reader) set(s *setting) {
	switch s.name {
	case "transpose":
		r.transpose = s.numbers[0]
	case "rtranspose":
		r.transpose = min(max(r.transpose+s.numbers[0], -127), 127)
	case "grace":
		r.grace.part = Fraction{s.numbers[0], s.numbers[1]}
		if s.numbers[0] >= s.numbers[1] {
			r.grace.part = Fraction{}
		}
	case "gracedivider":
		r.grace.part, r.grace.divider = Fraction{}, s.numbers[0]
	case "ratio":
		r.ratio = Fraction{s.numbers[0], s.numbers[1]}
	case "fermatafixed", "fermataproportional":
		r.fermataFixed = s.name == "fermatafixed"
	case "chordname":
		if r.chordNames == nil {
			r.chordNames = map[string][]int{}
		}
		r.chordNames[s.words[0]] = s.numbers
	default:
		r.patterned = r.patterned || s.name == "gchord"
		r.steps = append(r.steps, step{setting: s})
	}
}

// ornaments are how the decorations before a note change it.
type ornaments struct {
	short    bool // staccato: half as long, and silence after it
	held     bool // fermata
	accented bool
	arpeggio bool
	figure   figure
}

// figure is a way to play one note as several.
type figure int

const (
	noFigure figure = iota
	trill           // the note above and the note, alternating
	roll            // five equal notes around the note
	irish           // ~: a long roll for three units, else a grace note from above
)

// letters of decorations that an U: field can change.
var shorthands = map[byte]string{
	'.': "staccato", '~': "~", 'H': "fermata", 'L': "accent", 'M': "lowermordent", 'O': "coda", 'P': "uppermordent",
	'R': "roll", 'S': "segno", 'T': "trill", 'u': "upbow", 'v': "downbow",
}

// printed are the decorations that concern the page only.
var printed = names("upbow downbow open thumb plus + snap wedge tenuto shortphrase mediumphrase longphrase editorial courtesy " +
	"0 1 2 3 4 5 nil invisible xstem beambr1 beambr2 beamon stemless cresc dimin dacoda1 footer rbstop rbend head- head+ dot")

func names(list string) map[string]bool {
	set := map[string]bool{}
	for _, name := range strings.Fields(list) {
		set[name] = true
	}
	return set
}

// set applies a decoration; it reports whether it is one that is played.
func (o *ornaments) set(name string) bool {
	switch name {
	case "staccato", "breath":
		o.short = true
	case "fermata", "invertedfermata":
		o.held = true
	case "accent", ">", "emphasis", "^", "marcato", "sfz":
		o.accented = true
	case "arpeggio":
		o.arpeggio = true
	case "trill", "trill(":
		o.figure = trill
	case "roll":
		o.figure = roll
	case "~":
		o.figure = irish
	default:
		return false
	}
	return true
}

// accent is what an accent adds to the velocity.
const accent = 15

// neighbours are the notes above and below one in its key.
func (r *reader) neighbours(s spelling) (upper, lower int) {
	next := func(by int) int {
		at := strings.IndexByte(letters, s.letter) + by
		n := spelling{letter: letters[mod(at, 7)], octave: s.octave + floorDiv(at, 7)}
		n.alter = r.accidentals.key.alter(n.letter)
		return r.midi(n)
	}
	return next(1), next(-1)
}

// part is a note of a figure.
type part struct {
	midi   int
	length int64
}

// parts are the notes of a step's figure, for a note that lasts length after its grace
// notes.
func (s *step) parts(note int, length int64) []part {
	switch s.figure {
	case trill:
		return s.trill(note, length)
	case roll:
		fifth := length / 5
		return []part{{note, fifth}, {s.upper, fifth}, {note, fifth}, {s.lower, fifth}, {note, length - 4*fifth}}
	case irish:
		grace := s.unit / graceDivider
		if s.length == 3*s.unit {
			third := length / 3
			return []part{{note, third}, {s.upper, grace}, {note, third - grace}, {s.lower, grace}, {note, length - 2*third - grace}}
		}
		if grace < length {
			return []part{{s.upper, grace}, {note, length - grace}}
		}
	}
	return []part{{note, length}}
}

// maxTrill limits the notes of one trill.
const maxTrill = 1 << 12

// trill alternates at the speed of thirty-second notes of the written length: a dotted
// rhythm stretches them.
func (s *step) trill(note int, length int64) []part {
	count := min(max(s.written/(whole/32), 1), maxTrill)
	list := make([]part, count)
	for i := range count {
		midi := s.upper
		if i%2 == 1 {
			midi = note
		}
		list[i] = part{midi, (i+1)*length/count - i*length/count}
	}
	return list
}
