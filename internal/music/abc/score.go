package abc

import (
	"strings"

	"github.com/luanette/luanette/internal/music/abc/accompany"
)

// step is an item of a voice with its pitches and times computed. Items that do
// not affect sound have no step.
type step struct {
	sounds []sound  // of a note or chord
	graces []sound  // before them
	length int64    // time it takes, in units; of rests too
	hold   int64    // time that a fermata adds to it
	words  []string // the syllable of each verse

	ornaments
	upper, lower int   // the notes above and below, for a figure
	unit         int64 // the unit note length, for a figure
	written      int64 // the length before a dotted rhythm changes it, for a figure
	slurred      bool  // the next note follows without a gap

	bar     *Bar
	overlay bool
	part    string // the label of a P: field
	tempo   *Tempo
	meter   *Meter
	key     *Key
	setting *setting
	dynamic string           // a mark of loudness
	chord   *accompany.Chord // of a chord symbol; without notes and bass: silence
}

// sound is one note to be played.
type sound struct {
	midi   int
	length int64
	tie    bool
	bend   int // of a microtone, in steps of a pitch bend
}

// score computes pitches and times of a voice and reports warnings.
func score(tune *Tune, voice *Voice, diag *Diagnostics) []step {
	r := &reader{
		diag: diag, meter: tune.Meter, octave: voice.Octave, transpose: voice.Transpose,
		accidentals: accidentalMemory{key: tune.Key},
	}
	r.grace.divider = graceDivider
	r.setUnit(tune.Unit)
	r.header(tune)
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

// header applies the rhythm and the directives that stand before the first voice.
func (r *reader) header(tune *Tune) {
	voices := false
	for _, item := range tune.Header {
		switch item := item.(type) {
		case *Field:
			voices = voices || item.Name == "V"
			if item.Name == "R" {
				r.rhythm(item)
			}
		case *Directive:
			if !voices {
				r.directive(item)
			}
		}
	}
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

	graces  []sound // waiting for their note
	pending ornaments
	slurs   int
	prev    int // index+1 of the last step with a length, for broken rhythms

	tuplet struct {
		notes, with, left int
		at                Position
	}
	broken   Fraction // what a broken rhythm does to the next note; zero: nothing
	brokenAt Position

	ratio        Fraction // of the notes of a broken rhythm; zero: 3 to 1
	swing        swing
	fermataFixed bool
	grace        struct {
		divider int      // how many times shorter than written grace notes are
		part    Fraction // or how much of their note they take; zero: see divider
	}
	chordNames map[string][]int
	patterned  bool             // a directive set the pattern of chords
	bends      map[spelling]int // of the microtones of this bar

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
		r.graceNotes(item)
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
		r.mark(item)
	case *Slur:
		r.slur(item.Open)
	case *Field:
		r.field(item)
	case *Directive:
		r.directive(item)
	}
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
	case "R":
		r.rhythm(f)
	case "w":
		r.lyrics.sing(r.steps, f.Value)
	}
}

// sound computes a note or chord.
func (r *reader) sound(notes []*Note, factor Fraction, tie bool) {
	r.lyrics.music(len(r.steps))
	s := step{graces: r.graces, ornaments: r.pending, slurred: r.slurs > 0, unit: r.base}
	r.graces, r.pending = nil, ornaments{}
	pitches := r.accidentals.resolve(notes, tie)
	s.written = scale(scale(r.base, notes[0].Length.Num, notes[0].Length.Den), factor.Num, factor.Den)
	s.length = r.stretch(s.written)
	for i, n := range notes {
		if n.Length.Num*notes[0].Length.Den != notes[0].Length.Num*n.Length.Den {
			r.diag.warnOnce(n.Position, "all notes of a chord last as long as its first")
		}
		s.sounds = append(s.sounds, sound{r.midi(pitches[i]), s.length, tie || n.Tie, r.bend(n, pitches[i])})
	}
	r.ornament(&s, notes[0].Position, pitches)
	r.advance(s)
}

// ornament computes what the decorations of a step need.
func (r *reader) ornament(s *step, at Position, pitches []spelling) {
	switch {
	case s.figure == noFigure:
	case len(pitches) > 1:
		r.diag.warnOnce(at, "trills and rolls of chords are not played")
		s.figure = noFigure
	default:
		s.upper, s.lower = r.neighbours(pitches[0])
	}
	if s.held {
		s.hold = r.holdOf(s.length)
	}
	if r.grace.part.Den > 0 {
		r.shareGrace(s)
	}
}

// holdOf is how much longer a fermata makes a note or rest.
func (r *reader) holdOf(length int64) int64 {
	if r.fermataFixed {
		return r.base
	}
	return length
}

// shareGrace gives grace notes their part of the note after them.
func (r *reader) shareGrace(s *step) {
	var total int64
	for _, g := range s.graces {
		total += g.length
	}
	part := scale(s.length, r.grace.part.Num, r.grace.part.Den)
	for i := range s.graces {
		s.graces[i].length = s.graces[i].length * part / max(total, 1)
	}
}

func (r *reader) midi(s spelling) int { return s.midi() + 12*r.octave + r.transpose }

func (r *reader) rest(rest *Rest) {
	pending := r.pending
	r.pending = ornaments{}
	if rest.Bars {
		length := scale(r.meter.bar(), rest.Length.Num, 1)
		r.steps = append(r.steps, step{length: length})
		r.prev = 0
		return
	}
	r.accidentals.resolve(nil, false)
	s := step{length: r.stretch(scale(r.base, rest.Length.Num, rest.Length.Den)), graces: r.graces}
	r.graces = nil
	if pending.held {
		s.hold = r.holdOf(s.length)
	}
	r.advance(s)
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
	r.swung(&s)
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

func (r *reader) graceNotes(g *Grace) {
	for _, n := range g.Notes {
		length := scale(r.base, n.Length.Num, n.Length.Den*r.grace.divider)
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
	r.bends = nil
	r.filled, r.prev, r.swing.first = 0, 0, 0
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

// swing is how hornpipes are played: of two equal notes on a beat the first is longer.
type swing struct {
	unit  int64 // the length of the notes it applies to; 0: none
	first int   // index+1 of the step with the first note of a pair; 0: none
}

// The ratios of two notes in a broken rhythm: in a hornpipe, and otherwise.
var (
	hornpipe = Fraction{2, 1}
	dotted   = Fraction{3, 1}
)

// rhythm applies an R: field. Rhythms other than hornpipes are played as written.
func (r *reader) rhythm(f *Field) {
	r.swing = swing{}
	if !strings.HasPrefix(strings.ToLower(f.Value), "hornpipe") {
		return
	}
	switch {
	case r.meter.Beat == 4 && r.meter.Den == 4:
		r.swing.unit = whole / 8
	case r.meter.Beat == 2 && r.meter.Den == 4:
		r.swing.unit = whole / 16
	default:
		r.diag.warnOnce(f.Position, "R:hornpipe has no effect: the meter is not 4/4 or 2/4")
		return
	}
	if r.ratio.Den == 0 {
		r.ratio = hornpipe
	}
}

// swung changes a note that is about to be added, and the one before it, if they are a
// pair of equal notes on a beat.
func (r *reader) swung(s *step) {
	first := r.swing.first
	r.swing.first = 0
	if r.swing.unit == 0 || len(s.sounds) != 1 || s.length != r.swing.unit || s.written != s.length {
		return
	}
	long, short := r.shares(1)
	if first > 0 {
		was := &r.steps[first-1]
		r.filled -= was.length
		was.rescale(long)
		r.filled += was.length
		s.rescale(short)
		return
	}
	if r.filled%(2*r.swing.unit) == 0 && r.broken.Den == 0 {
		r.swing.first = len(r.steps) + 1
	}
}

// shares are the factors that a broken rhythm has for the longer and the shorter note.
func (r *reader) shares(dots int) (long, short Fraction) {
	if dots > 1 {
		power := 1 << dots
		return Fraction{2*power - 1, power}, Fraction{1, power}
	}
	ratio := r.ratio
	if ratio.Den == 0 {
		ratio = dotted
	}
	sum := ratio.Num + ratio.Den
	return Fraction{2 * ratio.Num, sum}, Fraction{2 * ratio.Den, sum}
}

// breakRhythm shortens one note and lengthens the other.
func (r *reader) breakRhythm(b *BrokenRhythm) {
	if r.prev == 0 || r.broken.Den > 0 {
		r.diag.fail(b.Position, "a broken rhythm without a note before it")
		return
	}
	long, short := r.shares(max(b.Dots, -b.Dots))
	if b.Dots < 0 {
		long, short = short, long
	}
	s := &r.steps[r.prev-1]
	was := s.length
	s.rescale(long)
	r.filled += s.length - was
	r.broken, r.brokenAt, r.swing.first = short, b.Position, 0
}

// rescale changes the length of a note or rest and of all its sounds.
func (s *step) rescale(by Fraction) {
	s.length = scale(s.length, by.Num, by.Den)
	if s.held {
		s.hold = scale(s.hold, by.Num, by.Den)
	}
	for i := range s.sounds {
		s.sounds[i].length = scale(s.sounds[i].length, by.Num, by.Den)
	}
}

// mark applies a decoration or chord symbol.
func (r *reader) mark(m *Mark) {
	switch m.Class {
	case "chord_symbol":
		r.chordSymbol(m)
	case "decoration":
		r.decoration(m)
	}
}

func (r *reader) decoration(m *Mark) {
	name := m.Text
	if len(name) == 1 && shorthands[name[0]] != "" {
		name = shorthands[name[0]]
	}
	_, dynamic := dynamics[name]
	_, swell := swells[name]
	switch {
	case dynamic || swell:
		r.steps = append(r.steps, step{dynamic: name})
	case r.pending.set(name) || printed[name]:
	default:
		r.diag.warnOnce(m.Position, "the decoration %s is not played", name)
	}
}

// chordSymbol starts the accompaniment by a chord.
func (r *reader) chordSymbol(m *Mark) {
	chord, kind := accompany.Parse(m.Text, r.chordNames)
	switch kind {
	case accompany.Text:
		r.diag.warnOnce(m.Position, "%q is not a chord and is not played; texts begin with ^ or _", m.Text)
		return
	case accompany.Unknown:
		r.diag.warnOnce(m.Position, "the chord %q is not known and is played as a major chord", m.Text)
	case accompany.Silence:
		r.steps = append(r.steps, step{chord: &chord})
		return
	}
	if _, ok := r.meter.pattern(); !ok && !r.patterned {
		r.diag.warnOnce(m.Position, "the meter %s has no pattern for chords; %%%%MIDI gchord sets one", r.meter.Text)
	}
	chord.Bass += r.transpose
	for i := range chord.Notes {
		chord.Notes[i] += r.transpose
	}
	r.steps = append(r.steps, step{chord: &chord})
}

func (r *reader) slur(open bool) {
	switch {
	case open:
		r.slurs++
	case r.slurs > 0:
		r.slurs--
	}
	if !open && r.slurs == 0 && r.prev > 0 { // the last note of a slur is separate from the next
		r.steps[r.prev-1].slurred = false
	}
}

// bendPerSemitone is a semitone in steps of a pitch bend, whose range is two semitones.
const bendPerSemitone = 4096

// bend is the pitch bend of a note: its own microtone, or that of the same note before
// it in the bar.
func (r *reader) bend(n *Note, s spelling) int {
	key := r.accidentals.reach(s)
	if n.Accidental != nil {
		if r.bends == nil {
			r.bends = map[spelling]int{}
		}
		r.bends[key] = min(max(int(n.Microtone*bendPerSemitone), -8192), 8191)
	}
	return r.bends[key]
}
