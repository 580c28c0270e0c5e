package abc

import (
	"cmp"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

// Transposition is a transposed text.
type Transposition struct {
	ABC         string `json:"abc"`
	Semitones   int    `json:"transposed_by"`
	OriginalKey string `json:"original_key"`
	NewKey      string `json:"new_key"`
}

// maxSemitones is how far a text can be moved, up or down.
const maxSemitones = 48

// Transpose moves every tune of text by semitones: keys, notes, accidentals and
// chord symbols. All else stays as it is: layout, comments, lyrics, percussion.
func Transpose(text string, semitones int) (Transposition, error) {
	return transpose(text, func(Key) (move, error) { return move{semitones: semitones}, nil })
}

// TransposeTo moves every tune of text by the interval that brings the first
// one to a key such as "D" or "F#m", up or down, whichever is nearer. A mode
// can be left out; it cannot be changed.
func TransposeTo(text, key string) (Transposition, error) {
	return transpose(text, func(from Key) (move, error) { return moveTo(from, key) })
}

// move is an interval: semitones, and places on the line of fifths when the
// spelling is settled.
type move struct {
	semitones int
	fifths    int
	settled   bool
}

// moveTo finds the interval from a key to one given by name.
func moveTo(from Key, name string) (move, error) {
	to, ok := parseKey(strings.TrimSpace(name))
	if !ok || to.Tonic == "" {
		return move{}, fault.New(fault.InvalidParams, "transpose abc: %q is not a key", name).WithHint("a key looks like G, F#m, Bb or D mix")
	}
	if from.Tonic == "" {
		return move{}, fault.New(fault.InvalidParams, "transpose abc: the tune has no key to start from").WithHint("transpose by semitones instead")
	}
	_, n := parseName(strings.TrimSpace(name))
	if to.Mode != from.Mode && n < len(strings.TrimSpace(name)) {
		return move{}, fault.New(fault.InvalidParams, "transpose abc: the tune is %s, which cannot become %s", from, to).
			WithHint("transposing keeps the mode; name a %s key", from.Mode)
	}
	a, _ := parseName(from.Tonic)
	b, _ := parseName(to.Tonic)
	fifths := b.place() - a.place()
	if sharps := from.Sharps + fifths; sharps < -7 || sharps > 7 {
		return move{}, fault.New(fault.InvalidParams, "transpose abc: %s %s has more than seven accidentals", to.Tonic, from.Mode).
			WithHint("use the enharmonic key, such as Eb for D#")
	}
	return move{semitones: mod(7*fifths+5, 12) - 5, fifths: fifths, settled: true}, nil
}

// in chooses the spelling of the move in a key: the one with the fewest accidentals in
// the new signature, and on a tie the one with sharps if the move goes up.
func (m move) in(k Key) move {
	if m.settled {
		if sharps := k.Sharps + m.fifths; sharps >= -7 && sharps <= 7 {
			return m
		}
	}
	m.settled = true
	if m.semitones%12 == 0 {
		m.fifths = 0
		return m
	}
	best := mod(7*m.semitones, 12) - 24
	for fifths := best; fifths <= 24; fifths += 12 {
		a, b := k.Sharps+fifths, k.Sharps+best
		if max(a, -a) < max(b, -b) || a == -b && m.semitones > 0 {
			best = fifths
		}
	}
	m.fifths = best
	return m
}

// pitch moves a pitch.
func (m move) pitch(s spelling) spelling {
	return spell(nearest(s.place()+m.fifths), s.midi()+m.semitones)
}

// name moves the name of a key or chord, which has one accidental at most.
func (m move) name(s spelling) spelling {
	place := s.place() + m.fifths
	for place > 12 {
		place -= 12
	}
	for place < -8 {
		place += 12
	}
	return spell(place, 60)
}

// edit replaces some bytes with text.
type edit struct {
	start, end int
	text       string
}

// transpose moves all tunes of text by the interval that first decides on for
// the key of the first one.
func transpose(text string, first func(Key) (move, error)) (Transposition, error) {
	p := newParser(text)
	if p == nil {
		_, diag := Parse(text)
		return Transposition{}, diag.Err()
	}
	var (
		result Transposition
		by     move
		edits  []edit
	)
	for n := 0; n == 0 || p.more(); n++ {
		p.tune()
		if err := p.diag.Err(); err != nil {
			return Transposition{}, err
		}
		if n == 0 {
			var err error
			if by, err = first(p.out.Key); err != nil {
				return Transposition{}, err
			}
			if by.semitones < -maxSemitones || by.semitones > maxSemitones {
				return Transposition{}, fault.New(fault.InvalidParams, "transpose abc: %d semitones are too many", by.semitones).
					WithHint("at most %d up or down", maxSemitones)
			}
			result.OriginalKey = p.out.Key.String()
			result.NewKey = by.in(p.out.Key).key(p.out.Key).String()
		}
		if by.semitones == 0 && by.fifths == 0 {
			continue
		}
		t := &transposer{by: by}
		if err := t.tune(p.out); err != nil {
			return Transposition{}, err
		}
		edits = append(edits, t.edits...)
	}
	result.Semitones = by.semitones
	result.ABC = apply(text, edits)
	return result, nil
}

// apply makes the edits.
func apply(text string, edits []edit) string {
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	var out strings.Builder
	done := 0
	for _, e := range edits {
		if e.start < done {
			continue
		}
		out.WriteString(text[done:e.start])
		out.WriteString(e.text)
		done = e.end
	}
	out.WriteString(text[done:])
	return out.String()
}

// transposer collects the edits that move one tune.
type transposer struct {
	by    move
	edits []edit
}

func (t *transposer) tune(tune *Tune) error {
	if tune.macros {
		return fault.New(fault.InvalidParams, "transpose abc: the tune uses macros (m:)").WithHint("write the notes of the macros into the tune")
	}
	for _, item := range tune.Header {
		if f, ok := item.(*Field); ok && f.Name == "K" {
			t.keyField(f, tune.Key)
		}
	}
	for _, v := range tune.Voices {
		by := t.by.in(tune.Key)
		w := &rewriter{transposer: t, by: by}
		w.from.key, w.to.key = tune.Key, by.key(tune.Key)
		if w.fixed = v.percussive(); w.fixed {
			w.by = move{settled: true}
		}
		for _, item := range v.Items {
			if err := w.item(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// percussive reports whether the notes of a voice are drums.
func (v *Voice) percussive() bool {
	for _, item := range v.Items {
		if d, ok := item.(*Directive); ok && d.Name == "MIDI" && strings.Join(strings.Fields(d.Value), " ") == "channel 10" {
			return true
		}
	}
	return v.Percussion
}

// replace adds an edit.
func (t *transposer) replace(start, end int, text string) {
	t.edits = append(t.edits, edit{start, end, text})
}

// keyField moves the tonic of a K: field and the accidentals listed in it.
func (t *transposer) keyField(f *Field, k Key) {
	by := t.by.in(k)
	switch {
	case k.pipes && by.semitones != 0:
		t.replace(f.valueStart, f.valueStart+k.tonicEnd, by.name(spelling{letter: 'A'}).name()+"mix")
	case k.Tonic != "":
		tonic, _ := parseName(k.Tonic)
		t.replace(f.valueStart, f.valueStart+k.tonicEnd, by.name(tonic).name())
	}
	for _, g := range k.listed {
		moved := by.accidental(g)
		t.replace(f.valueStart+g.start, f.valueStart+g.end, accidentals[moved.alter+2]+strings.ToLower(string(moved.letter)))
	}
}

// accidental moves an accidental listed in a K: field.
func (m move) accidental(g global) spelling {
	return spell(nearest(spelling{letter: g.letter, alter: g.alter}.place()+m.fifths), 60)
}

// key is the moved key. One without tonic stays as it is, but for the
// accidentals listed in it.
func (m move) key(k Key) Key {
	moved := k
	if m.semitones != 0 {
		moved.pipes = false
	}
	if k.pipes && m.semitones != 0 {
		k.Tonic, moved.Mode = "A", "mixolydian"
	}
	if k.Tonic != "" {
		tonic, _ := parseName(k.Tonic)
		moved.Tonic = m.name(tonic).name()
		moved.Sharps = k.Sharps + m.fifths
	}
	moved.Extra = nil
	for _, g := range k.listed {
		if moved.Extra == nil {
			moved.Extra = map[string]int{}
		}
		s := m.accidental(g)
		moved.Extra[string(s.letter)] = s.alter
	}
	return moved
}

// rewriter moves the items of one voice. It tracks the meaning of accidentals in
// the old text and in the new one, and writes an accidental wherever the two would
// differ.
type rewriter struct {
	*transposer
	by       move
	fixed    bool // percussion: the sound stays
	from, to accidentalMemory
}

func (w *rewriter) item(item Item) error {
	switch item := item.(type) {
	case *Note:
		return w.sound([]*Note{item}, item.Tie)
	case *Chord:
		return w.sound(item.Notes, item.Tie)
	case *Grace:
		for _, n := range item.Notes {
			if _, _, err := w.note(n); err != nil {
				return err
			}
		}
	case *Rest:
		w.from.tied, w.to.tied = nil, nil
	case *Bar:
		if item.line {
			w.from.bar()
			w.to.bar()
		}
	case *Overlay:
		w.from.bar()
		w.to.bar()
	case *Mark:
		w.mark(item)
	case *Directive:
		if scope, ok := item.scope(); ok {
			w.from.scope, w.to.scope = scope, scope
		}
	case *Field:
		w.field(item)
	}
	return nil
}

func (w *rewriter) field(f *Field) {
	if f.Name != "K" {
		return
	}
	k, _ := parseKey(f.Value)
	if k.silent {
		return
	}
	w.keyField(f, k)
	by := w.transposer.by.in(k)
	w.from.key, w.to.key = k, by.key(k)
	if !w.fixed {
		w.by = by
	}
}

func (w *rewriter) sound(notes []*Note, tie bool) error {
	was, is := make([]spelling, len(notes)), make([]spelling, len(notes))
	for i, n := range notes {
		var err error
		if was[i], is[i], err = w.note(n); err != nil {
			return err
		}
	}
	w.from.carry(notes, was, tie)
	w.to.carry(notes, is, tie)
	return nil
}

// note rewrites a note and returns its old and new pitch.
func (w *rewriter) note(n *Note) (was, is spelling, err error) {
	if n.Microtone != 0 {
		return was, is, fault.New(fault.InvalidParams, "transpose abc: line %d, column %d: microtones cannot be transposed", n.Line, n.Column).
			WithHint("set %%%%MIDI transpose in the tune instead")
	}
	was = w.from.pitch(n)
	is = w.by.pitch(was)
	if is.octave < -5 || is.octave > 5 {
		return was, is, fault.New(fault.InvalidParams, "transpose abc: line %d, column %d: the note leaves the range of ABC", n.Line, n.Column).
			WithHint("transpose by less")
	}
	text := is.String()
	if n.Accidental != nil || w.to.implied(is.letter, is.octave) != is.alter {
		text = accidentals[is.alter+2] + text
		w.to.write(is)
	}
	w.replace(n.start, n.pitchEnd, text)
	return was, is, nil
}

// mark moves a chord symbol such as Am7/G.
func (w *rewriter) mark(m *Mark) {
	if m.Class != "chord_symbol" || w.fixed {
		return
	}
	for at := 0; ; {
		name, n := parseName(m.Text[at:])
		if n > 0 {
			w.replace(m.textStart+at, m.textStart+at+n, w.by.name(name).name())
		}
		bass := strings.IndexByte(m.Text[at:], '/')
		if bass < 0 {
			return
		}
		at += bass + 1
	}
}
