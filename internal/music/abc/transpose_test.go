package abc

import (
	"reflect"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
)

// TestTransposingMovesEveryNoteAndNothingElse listens to every tune before and
// after, for every interval of an octave up and down.
func TestTransposingMovesEveryNoteAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, text := range tunes(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "macros" || name == "microtones" {
				if _, err := Transpose(text, 1); fault.CodeOf(err) != fault.InvalidParams || fault.HintOf(err) == "" {
					t.Errorf("got %v", err)
				}
				return
			}
			for semitones := -12; semitones <= 12; semitones++ {
				moved, err := Transpose(text, semitones)
				if err != nil {
					t.Fatalf("by %d: %v", semitones, err)
				}
				want := play(t, text)
				for i := range want {
					want[i].pitch = uint8(int(want[i].pitch) + semitones)
				}
				if got := play(t, moved.ABC); !reflect.DeepEqual(got, want) {
					t.Fatalf("by %d:\n%s\ngot  %v\nwant %v", semitones, moved.ABC, got, want)
				}
				if semitones == 0 && moved.ABC != text {
					t.Errorf("by nothing, got\n%s\nwant\n%s", moved.ABC, text)
				}
			}
		})
	}
}

// play lists the notes of a text as we play it, without accompaniment: chords stay in
// one octave.
func play(t *testing.T, text string) []playedNote {
	t.Helper()
	tune, diag := Parse(text)
	if err := diag.Err(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, v := range tune.Voices {
		for i, s := range v.steps {
			if s.chord != nil || s.setting != nil && strings.HasPrefix(s.setting.name, "dr") {
				v.steps[i] = step{}
			}
		}
	}
	file, err := ToMIDI(tune, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return listen(file)
}

func TestTransposeKeepsLayout(t *testing.T) {
	t.Parallel()
	const text = `X:1
T:A title with CDEF in it
%  a comment with CDEF in it
M: 4/4   % meter
L:1/8
K: Dmaj  % the key
"D"D2  F>A |: "A7/C#"^c2{de}  c2 "^annotation" =c2 [DFA]2 | (3ABc  !trill!d2- d2 z2 :| % end
w: words A B C
[K:Bm exp ^f _b] f b2 "G#dim"B,,2 |]
W: more words`
	const want = `X:1
T:A title with CDEF in it
%  a comment with CDEF in it
M: 4/4   % meter
L:1/8
K: Emaj  % the key
"E"E2  G>B |: "B7/D#"^d2{ef}  d2 "^annotation" =d2 [EGB]2 | (3Bcd  !trill!e2- e2 z2 :| % end
w: words A B C
[K:C#m exp ^g =c] g c'2 "A#dim"C,2 |]
W: more words`
	got, err := Transpose(text, 2)
	if err != nil {
		t.Fatal(err)
	}
	if got.ABC != want {
		t.Errorf("got\n%s\nwant\n%s", got.ABC, want)
	}
	if got.OriginalKey != "D major" || got.NewKey != "E major" || got.Semitones != 2 {
		t.Errorf("got %q → %q by %d", got.OriginalKey, got.NewKey, got.Semitones)
	}
}

func TestTransposeSpelling(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		semitones  int
		want       string
	}{
		{"sharps going up", "K:C\nCEG ^F", 6, "K:F#\nFAc ^B"},
		{"flats going down", "K:C\nCEG _B", -6, "K:Gb\nG,B,D _F"},
		{"fewest accidentals", "K:E\nEGB", 1, "K:F\nFAc"},
		{"minor", "K:Am\nA ^G A", 3, "K:Cm\nc =B c"},
		{"octave", "K:Cb\nC c' C,,", 12, "K:Cb\nc c'' C,"},
		{"bagpipes", "K:HP\nA c f", 2, "K:Bmix\nB d g"},
		{"without key", "K:none\nC E F", 2, "K:none\nD ^F G"},
		{"bar remembers", "K:none\nE E | E", 2, "K:none\n^F F | ^F"},
		{"tie remembers", "K:C\n^F-|F F", 1, "K:Db\n=G-|G G"},
		{"drums", "V:1 clef=perc\nK:C\nF B", 2, "V:1 clef=perc\nK:D\n=F B"},
		{"clef alone", "K:G\n[K:bass] F", 2, "K:A\n[K:bass] G"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := Transpose("X:1\nT:t\n"+test.text, test.semitones)
			if err != nil {
				t.Fatal(err)
			}
			if want := "X:1\nT:t\n" + test.want; got.ABC != want {
				t.Errorf("got\n%s\nwant\n%s", got.ABC, want)
			}
		})
	}
}

func TestTransposeTo(t *testing.T) {
	t.Parallel()
	tests := []struct {
		key, to, want string
		semitones     int
	}{
		{"G", "D", "D major", -5},
		{"G", "C#", "C# major", 6},
		{"G", "Db", "Db major", 6},
		{"Em", "Am", "A minor", 5},
		{"Em", "D", "D minor", -2},
		{"D mix", "G mixolydian", "G mixolydian", 5},
		{"Bb", "B", "B major", 1},
		{"C", "C", "C major", 0},
		{"C#", "Db", "Db major", 0},
	}
	for _, test := range tests {
		got, err := TransposeTo("X:1\nT:t\nK:"+test.key+"\nCDEF|\n", test.to)
		if err != nil {
			t.Errorf("%s to %s: %v", test.key, test.to, err)
			continue
		}
		if got.NewKey != test.want || got.Semitones != test.semitones {
			t.Errorf("%s to %s: got %s by %d, want %s by %d", test.key, test.to, got.NewKey, got.Semitones, test.want, test.semitones)
		}
	}
}

func TestTransposeRefuses(t *testing.T) {
	t.Parallel()
	const tune = "X:1\nT:t\nK:Em\nCDEF|\n"
	tests := []struct {
		name, want string
		run        func() (Transposition, error)
	}{
		{"no key", `"H" is not a key`, func() (Transposition, error) { return TransposeTo(tune, "H") }},
		{"other mode", "E minor, which cannot become G major", func() (Transposition, error) { return TransposeTo(tune, "Gmaj") }},
		{"too many sharps", "G# major has more than seven", func() (Transposition, error) { return TransposeTo("X:1\nT:t\nK:E\nC", "G#") }},
		{"nothing to start from", "no key to start from", func() (Transposition, error) { return TransposeTo("X:1\nT:t\nK:none\nC", "D") }},
		{"too far", "100 semitones", func() (Transposition, error) { return Transpose(tune, 100) }},
		{"out of range", "line 4, column 1: the note leaves", func() (Transposition, error) { return Transpose("X:1\nT:t\nK:C\nc''''|\n", 12) }},
		{"bad text", "line 4, column 1: a [ that is not closed", func() (Transposition, error) { return Transpose("X:1\nT:t\nK:C\n[CE\n", 1) }},
		{"long text", "longer than", func() (Transposition, error) { return Transpose(strings.Repeat("C", MaxText+1), 1) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := test.run()
			if fault.CodeOf(err) != fault.InvalidParams || !strings.Contains(err.Error(), test.want) || fault.HintOf(err) == "" {
				t.Errorf("got %v (hint %q), want it to say %q", err, fault.HintOf(err), test.want)
			}
		})
	}
}

func TestTransposeMovesEveryTune(t *testing.T) {
	t.Parallel()
	got, err := Transpose("X:1\nT:a\nK:C\nC|\n\nsome text\n\nX:2\nT:b\nK:G\nG|\n", 2)
	if err != nil {
		t.Fatal(err)
	}
	if want := "X:1\nT:a\nK:D\nD|\n\nsome text\n\nX:2\nT:b\nK:A\nA|\n"; got.ABC != want {
		t.Errorf("got\n%s\nwant\n%s", got.ABC, want)
	}
}
