package abc

import "strings"

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
