package abc

import "strings"

// step is an item of a voice with its pitches and times computed. Items that do
// not affect sound have no step.
type step struct {
	sounds []sound  // of a note or chord
	graces []sound  // before them
	length int64    // time it takes, in units; of rests too
	louder int      // what dynamics add to the velocity
	words  []string // the syllable of each verse

	bar       *Bar
	overlay   bool
	part      string // the label of a P: field
	tempo     *Tempo
	meter     *Meter
	key       *Key
	directive *Directive
}

// sound is one note to be played.
type sound struct {
	midi   int
	length int64
	tie    bool
}

// score computes pitches and times of a voice and reports warnings.
func score(tune *Tune, voice *Voice, diag *Diagnostics) []step {
	r := &reader{
		diag: diag, meter: tune.Meter, octave: voice.Octave, transpose: voice.Transpose,
		accidentals: accidentalMemory{key: tune.Key},
	}
	r.setUnit(tune.Unit)
	for _, item := range tune.Header {
		if f, ok := item.(*Field); ok && f.Name == "V" {
			break
		}
		if d, ok := item.(*Directive); ok {
			r.directive(d)
		}
	}
	for _, item := range voice.Items {
		r.item(item)
	}
	if r.tuplet.left > 0 {
		diag.warn(r.tuplet.at, "the tuplet lacks %d notes", r.tuplet.left)
	}
	if r.broken.Den > 0 {
		diag.warn(r.brokenAt, "a broken rhythm without a note after it")
	}
	return r.steps
}

// reader processes one voice item by item.
type reader struct {
	diag  *Diagnostics
	steps []step

	accidentals       accidentalMemory
	meter             Meter
	unit              Fraction
	base              int64 // the unit note length in time units
	octave, transpose int

	graces []sound // waiting for their note
	prev   int     // index+1 of the last step with a length, for broken rhythms

	tuplet struct {
		notes, with, left int
		at                Position
	}
	broken   Fraction // what a broken rhythm does to the next note; zero: nothing
	brokenAt Position

	louder int
	lyrics lyrics

	filled   int64 // time of this bar so far
	barPlain bool  // the bar began at a plain bar line
}

func (r *reader) setUnit(unit Fraction) {
	r.unit = unit
	r.base = scale(whole, unit.Num, unit.Den)
}

func (r *reader) item(item Item) {
	switch item := item.(type) {
	case *Note:
		r.sound([]*Note{item}, Fraction{1, 1}, item.Tie)
	case *Chord:
		r.sound(item.Notes, item.Length, item.Tie)
	case *Rest:
		r.rest(item)
	case *Grace:
		r.grace(item)
	case *Bar:
		r.bar(item)
	case *Tuplet:
		r.startTuplet(item)
	case *BrokenRhythm:
		r.breakRhythm(item)
	case *Overlay:
		r.resetBar()
		r.steps = append(r.steps, step{overlay: true})
	case *Mark:
		if louder, ok := dynamics[item.Text]; ok && item.Class == "decoration" {
			r.louder = louder
		}
	case *Field:
		r.field(item)
	case *Directive:
		r.directive(item)
	}
}

// dynamics are the marks of loudness, by what they add to the velocity.
var dynamics = map[string]int{
	"pppp": -70, "ppp": -60, "pp": -45, "p": -30, "mp": -15, "mf": 0, "f": 15, "ff": 30, "fff": 45, "ffff": 47,
}

// field applies a field of the body. Malformed fields are filtered out before.
func (r *reader) field(f *Field) {
	switch f.Name {
	case "K":
		key, _ := parseKey(f.Value)
		s := parseProperties(f.Value)
		v := Voice{Octave: r.octave, Transpose: r.transpose}
		v.apply(s)
		r.octave, r.transpose = v.Octave, v.Transpose
		if key.silent {
			return
		}
		r.accidentals.key = key
		r.steps = append(r.steps, step{key: &key})
	case "L":
		unit, _ := parseUnit(f.Value)
		r.setUnit(unit)
	case "M":
		r.meter, _ = parseMeter(f.Value)
		meter := r.meter
		r.steps = append(r.steps, step{meter: &meter})
	case "Q":
		tempo, _ := parseTempo(f.Value, r.unit)
		r.steps = append(r.steps, step{tempo: &tempo})
	case "P":
		r.steps = append(r.steps, step{part: f.Value})
	case "w":
		r.lyrics.sing(r.steps, f.Value)
	}
}

func (r *reader) directive(d *Directive) {
	switch d.Name {
	case "propagate-accidentals":
		r.accidentals.scope = d.Value
	case "MIDI":
		words := strings.Fields(d.Value)
		if len(words) == 2 && words[0] == "transpose" {
			if n, ok := parseInt(words[1]); ok && n >= -127 && n <= 127 {
				r.transpose = n
			}
			return
		}
		r.steps = append(r.steps, step{directive: d})
	}
}

// sound computes a note or chord.
func (r *reader) sound(notes []*Note, factor Fraction, tie bool) {
	r.lyrics.music(len(r.steps))
	s := step{graces: r.graces, louder: r.louder}
	r.graces = nil
	pitches := r.accidentals.resolve(notes, tie)
	for i, n := range notes {
		length := r.stretch(scale(scale(r.base, n.Length.Num, n.Length.Den), factor.Num, factor.Den))
		s.sounds = append(s.sounds, sound{r.midi(pitches[i]), length, tie || n.Tie})
	}
	s.length = s.sounds[0].length
	r.advance(s)
}

func (r *reader) midi(s spelling) int { return s.midi() + 12*r.octave + r.transpose }

func (r *reader) rest(rest *Rest) {
	if rest.Bars {
		length := scale(r.meter.bar(), rest.Length.Num, 1)
		r.steps = append(r.steps, step{length: length})
		r.prev = 0
		return
	}
	r.accidentals.resolve(nil, false)
	r.advance(step{length: r.stretch(scale(r.base, rest.Length.Num, rest.Length.Den))})
}

// stretch applies the tuplet and the broken rhythm that a note belongs to.
func (r *reader) stretch(length int64) int64 {
	if r.tuplet.left > 0 {
		length = scale(length, r.tuplet.with, r.tuplet.notes)
	}
	if r.broken.Den > 0 {
		length = scale(length, r.broken.Num, r.broken.Den)
	}
	return length
}

// advance adds a step that takes time.
func (r *reader) advance(s step) {
	r.steps = append(r.steps, s)
	r.prev = len(r.steps)
	r.filled = min(r.filled+s.length, maxUnits)
	r.broken = Fraction{}
	if r.tuplet.left > 0 {
		r.tuplet.left--
	}
}

// graceDivider is how many times shorter than written grace notes are.
const graceDivider = 4

func (r *reader) grace(g *Grace) {
	for _, n := range g.Notes {
		length := scale(r.base, n.Length.Num, n.Length.Den*graceDivider)
		r.graces = append(r.graces, sound{midi: r.midi(r.accidentals.pitch(n)), length: length})
	}
	if len(r.graces) > maxChord {
		r.diag.fail(g.Position, "more than %d grace notes", maxChord)
		r.graces = r.graces[:maxChord]
	}
}

func (r *reader) startTuplet(t *Tuplet) {
	if r.tuplet.left > 0 {
		r.diag.warn(t.Position, "a tuplet inside a tuplet that lacks %d notes", r.tuplet.left)
	}
	r.tuplet.notes, r.tuplet.with, r.tuplet.left, r.tuplet.at = t.Notes, t.With, t.Count, t.Position
	if t.With == 0 {
		r.tuplet.with = r.usual(t.Notes)
	}
	if t.Count == 0 {
		r.tuplet.left = t.Notes
	}
}

// usual is the default of Tuplet.With.
func (r *reader) usual(notes int) int {
	switch notes {
	case 3, 6:
		return 2
	case 2, 4, 8:
		return 3
	}
	if r.meter.compound() {
		return 3
	}
	return 2
}

// breakRhythm shortens one note and lengthens the other.
func (r *reader) breakRhythm(b *BrokenRhythm) {
	if r.prev == 0 || r.broken.Den > 0 {
		r.diag.fail(b.Position, "a broken rhythm without a note before it")
		return
	}
	power := 1 << max(b.Dots, -b.Dots)
	long, short := Fraction{2*power - 1, power}, Fraction{1, power}
	if b.Dots < 0 {
		long, short = short, long
	}
	s := &r.steps[r.prev-1]
	was := s.length
	s.length = scale(s.length, long.Num, long.Den)
	for i := range s.sounds {
		s.sounds[i].length = scale(s.sounds[i].length, long.Num, long.Den)
	}
	r.filled += s.length - was
	r.broken, r.brokenAt = short, b.Position
}

// bar ends a bar: it clears the accidentals and checks the length.
func (r *reader) bar(b *Bar) {
	r.steps = append(r.steps, step{bar: b})
	if !b.line {
		return
	}
	plain := b.Ends == 0 && b.Begins == 0 && !b.Double && len(b.Ending) == 0
	r.checkBar(b, plain)
	if r.filled > 0 || !plain {
		r.barPlain = plain
	}
	r.resetBar()
}

func (r *reader) resetBar() {
	r.accidentals.bar()
	r.filled, r.prev = 0, 0
}

// checkBar warns of a bar that is too long, or too short although there are
// plain bar lines on both sides of it: at the edge of a section it may be.
func (r *reader) checkBar(b *Bar, plain bool) {
	const rounding = 64
	bar := r.meter.bar()
	switch {
	case r.meter.free() || r.filled == 0:
	case r.filled > bar+rounding:
		r.diag.warn(b.Position, "the bar before this line is %s too long for the meter %s", spoken(r.filled-bar), r.meter.Text)
	case r.filled < bar-rounding && plain && r.barPlain:
		r.diag.warn(b.Position, "the bar before this line is %s too short for the meter %s", spoken(bar-r.filled), r.meter.Text)
	}
}

// spoken formats a time as the simplest nearby fraction of a whole note.
func spoken(units int64) string {
	for den := int64(1); den <= 64; den++ {
		if num := (units*den + whole/2) / whole; num > 0 && abs(num*whole-units*den) < 64*den {
			return Fraction{int(num), int(den)}.String()
		}
	}
	return "a little"
}

func abs(n int64) int64 { return max(n, -n) }
