package abc

import "strings"

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
