package abc

import "github.com/luanette/luanette/internal/music/abc/accompany"

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
