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
