package abc

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
)

// tuneOf is a tune with a header before the music.
func tuneOf(music string) string { return "X:1\nT:t\nM:4/4\nL:1/8\nK:C\n" + music + "\n" }

func TestSummarize(t *testing.T) {
	t.Parallel()
	got := Summarize("X:7\nT:The Tune\nT:Another name\nC:Anon\nM:6/8\nQ:3/8=100\nK:F#dor\n|: FGA [CEG]3 | {g}z3 Z2 :| c6\n")
	want := Summary{
		Valid: true, Errors: []Diagnostic{}, Warnings: []Diagnostic{},
		Title: "The Tune / Another name", Composer: "Anon", Key: "F# dorian", Meter: "6/8", Tempo: 100, TempoBeat: "3/8",
		Voices: 1, NoteCount: 7, BarCount: 4,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestTunesAreValid(t *testing.T) {
	t.Parallel()
	for name, text := range tunes(t) {
		if diag := Validate(text); !diag.Valid() {
			t.Errorf("%s: %v", name, diag.Err())
		}
	}
}

func TestDiagnostics(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text       string
		errors, warnings []string
	}{
		{"empty", "", []string{"line 1, column 1: there is no tune"}, []string{"line 1, column 1: the tune has no title", "line 1, column 1: the tune has no notes"}},
		{"no number", "T:t\nK:C\nC\n", nil, []string{"line 1, column 1: a tune should begin with an X: field"}},
		{"bad number", "X:one\nT:t\nK:C\nC\n", nil, []string{`line 1, column 1: X: should be a number, not "one"`}},
		{"no key", "X:1\nT:t\nCDEF\n", []string{"line 3, column 1: music before the K: field"}, nil},
		{"no body", "X:1\nT:t\n", []string{"line 1, column 1: no K: field ends the header"}, []string{"line 1, column 1: the tune has no notes"}},
		{"bad key", "X:1\nT:t\nK:Hm\nC\n", []string{`line 3, column 1: K: cannot be "Hm"`}, nil},
		{"bad meter", "X:1\nT:t\nM:4/5\nK:C\nC\n", []string{`line 3, column 1: M: cannot be "4/5"`}, nil},
		{"bad unit", "X:1\nT:t\nL:1/0\nK:C\nC\n", []string{`line 3, column 1: L: cannot be "1/0"`}, nil},
		{"bad tempo", "X:1\nT:t\nQ:fast\nK:C\nC\n", []string{`line 3, column 1: Q: cannot be "fast"`}, nil},
		{"unknown field", "X:1\nT:t\nY:?\nK:C\nC\n", nil, []string{"line 3, column 1: there is no Y: field"}},
		{"bad order", "X:1\nT:t\nP:A(B\nK:C\nC\n", nil, []string{`line 3, column 1: P: "A(B" is not an order of parts`}},
		{"open chord", tuneOf("CD [CE"), []string{"line 6, column 4: a [ that is not closed"}, nil},
		{"open grace", tuneOf("CD {ga"), []string{"line 6, column 4: a { that is not closed"}, nil},
		{"open quote", tuneOf(`CD "Am`), []string{`line 6, column 4: a " that is not closed`}, nil},
		{"open field", tuneOf("CD [K:G"), []string{"line 6, column 4: a [ that is not closed"}, nil},
		{"stray close", tuneOf("CD ] E"), []string{"line 6, column 4: a ] that closes nothing"}, nil},
		{"empty chord", tuneOf("[z]"), []string{"line 6, column 1: a chord without notes"}, []string{"line 1, column 1: the tune has no notes"}},
		{"stray accidental", tuneOf("C ^ D"), []string{"line 6, column 3: an accidental without a note"}, nil},
		{"unexpected", tuneOf("C é D }"), []string{"line 6, column 3: unexpected 'é'", "line 6, column 7: unexpected '}'"}, nil},
		{"columns count characters", tuneOf(`"^é"C ] E`), []string{"line 6, column 7: a ] that closes nothing"}, nil},
		{"zero length", tuneOf("C0"), []string{"line 6, column 2: 0 is not a length"}, nil},
		{"huge length", tuneOf("C99999999999"), []string{"line 6, column 2: 99999999999 is not a length"}, nil},
		{"huge division", tuneOf("C" + strings.Repeat("/", 40)), []string{"line 6, column 2: //"}, nil},
		{"far octave", tuneOf("C,,,,,,,"), []string{"line 6, column 1: a note -7 octaves from middle C"}, nil},
		{"broken alone", tuneOf(">C"), []string{"line 6, column 1: a broken rhythm without a note before it"}, nil},
		{"broken at the end", tuneOf("C D>"), nil, []string{"line 6, column 4: a broken rhythm without a note after it"}},
		{"empty line in the middle", "X:1\nT:t\nK:C\n\nCDEF|\n", nil, []string{"line 4, column 1: the tune has no notes: this empty line ends it before line 5"}},
		{"broken too often", tuneOf("C>>>>D"), []string{"line 6, column 2: a rhythm broken 4 times"}, nil},
		{"short tuplet", tuneOf("(3CD"), nil, []string{"line 6, column 1: the tuplet lacks 1 notes"}},
		{"big tuplet", tuneOf("(99CD"), []string{"line 6, column 1: (99 is not a tuplet"}, nil},
		{"colon", tuneOf("C : D"), []string{"line 6, column 3: a : without a bar line"}, nil},
		{"repeats", tuneOf("|" + strings.Repeat(":", 20) + "C"), []string{"line 6, column 1: a section repeated more than 16 times"}, nil},
		{"ending", tuneOf("C |99 D"), []string{"line 6, column 3: an ending for pass 99"}, nil},
		{"long rest", tuneOf("Z5000"), []string{"line 6, column 1: a rest of 5000 bars"}, []string{"line 1, column 1: the tune has no notes"}},
		{"tie", tuneOf("z - C"), nil, []string{"line 6, column 3: a tie without a note"}},
		{"slurs", tuneOf("(C D) E)"), nil, []string{"line 6, column 8: a ) that closes nothing"}},
		{"open slur", tuneOf("(C D"), nil, []string{"line 1, column 1: 1 slurs are not closed"}},
		{"reserved", tuneOf("C * D"), nil, []string{"line 6, column 3: '*' has no meaning here"}},
		{"long bar", tuneOf("C8 D | E8 |"), nil, []string{"line 6, column 6: the bar before this line is 1/8 too long for the meter 4/4"}},
		{"short bar", tuneOf("C8 | D6 | E8 |"), nil, []string{"line 6, column 9: the bar before this line is 1/4 too short for the meter 4/4"}},
		{"pickup and split bars", tuneOf("C2 | D8 | E6 :| F2 | G8 | A6 |]"), nil, nil},
		{"nameless voice", tuneOf("V:\nC"), []string{"line 6, column 1: V: names no voice"}, nil},
		{"two tunes", tuneOf("C8") + "\nX:2\nK:C\nC\n", nil, []string{"line 8, column 1: only the first tune"}},
		{"long text", strings.Repeat("C", MaxText+1), []string{"line 1, column 1: a text of 262145 bytes"}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			diag := Validate(test.text)
			same(t, "errors", diag.Errors, test.errors)
			same(t, "warnings", diag.Warnings, test.warnings)
			if err := diag.Err(); (err != nil) != (len(test.errors) > 0) || err != nil && fault.HintOf(err) == "" {
				t.Errorf("as an error: %v", err)
			}
		})
	}
}

// same compares diagnostics with how they should begin.
func same(t *testing.T, what string, got []Diagnostic, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
		return
	}
	for i, d := range got {
		if !strings.HasPrefix(d.String(), want[i]) {
			t.Errorf("%s: got %q, want %q", what, d, want[i])
		}
	}
}

func TestDiagnosticsAreBounded(t *testing.T) {
	t.Parallel()
	diag := Validate(tuneOf(strings.Repeat("} * ", 10_000)))
	if len(diag.Errors) != maxDiagnostics || len(diag.Warnings) != maxDiagnostics {
		t.Errorf("got %d errors, %d warnings", len(diag.Errors), len(diag.Warnings))
	}
}

// TestLongLines would take minutes if finding an item's column took a scan of its line.
func TestLongLines(t *testing.T) {
	t.Parallel()
	for _, item := range []string{"[CEG]", "{c}C"} {
		text := tuneOf(strings.Repeat(item, MaxText/len(item)-20))
		tune, _ := Parse(text)
		if tune.Number != "1" {
			t.Errorf("%s: got %+v", item, tune)
		}
	}
}

func TestFileHeaderHoldsForTheTune(t *testing.T) {
	t.Parallel()
	tune, _ := Parse("%abc-2.1\nM:3/4\nL:1/4\nC:Somebody\n\nX:1\nT:t\nK:C\nC D E|\n")
	if tune.Meter.Text != "3/4" || tune.Unit != (Fraction{1, 4}) || tune.Composer != "Somebody" {
		t.Errorf("got %+v", tune)
	}
}

func TestUnitFollowsMeter(t *testing.T) {
	t.Parallel()
	for meter, want := range map[string]Fraction{"2/4": {1, 16}, "3/4": {1, 8}, "C": {1, 8}, "C|": {1, 8}, "none": {1, 8}, "(2+3)/16": {1, 16}} {
		tune, diag := Parse("X:1\nT:t\nM:" + meter + "\nK:C\nC\n")
		if tune.Unit != want || !diag.Valid() {
			t.Errorf("%s: got %v, want %v; %v", meter, tune.Unit, want, diag.Errors)
		}
	}
}

func TestParseTempo(t *testing.T) {
	t.Parallel()
	for text, quarters := range map[string]float64{
		"1/4=120": 120, "1/2=60": 120, "3/8=80": 120, `"Allegro" 1/4=100`: 100, `1/4=90 "Slow"`: 90, "120": 60,
		"C=120": 60, "C2=120": 120, "1/4 1/8=80": 120, `"Adagio"`: 60, "1/4=72.5": 72.5,
	} {
		tempo, ok := parseTempo(text, Fraction{1, 8})
		if !ok || tempo.quarters() != quarters {
			t.Errorf("%s: got %v, %v, want %v", text, tempo.quarters(), ok, quarters)
		}
	}
	for _, text := range []string{"", "x=1", "1/4=", "1/4=x", `"open`, "1/4=0", "1/4=NaN", "1/4=1e30", "0/4=3"} {
		if tempo, ok := parseTempo(text, Fraction{1, 8}); ok {
			t.Errorf("%q: got %v", text, tempo)
		}
	}
}

func TestParseKey(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text, want string
		sharps     int
	}{
		{"C", "C major", 0}, {"G", "G major", 1}, {"Am", "A minor", 0}, {"F#m", "F# minor", 3}, {"Bb", "Bb major", -2},
		{"D mix", "D mixolydian", 1}, {"EDorian", "E dorian", 2}, {"Ephr", "E phrygian", 0}, {"F lyd", "F lydian", 0},
		{"Bloc", "B locrian", 0}, {"AAeolian", "A minor", 0}, {"Cion", "C major", 0}, {"A minor", "A minor", 0},
		{"G clef=bass", "G major", 1}, {"G bass", "G major", 1}, {"HP", "HP", 2}, {"none", "none", 0}, {"", "none", 0}, {"B♭", "Bb major", -2},
	}
	for _, test := range tests {
		got, ok := parseKey(test.text)
		if !ok || got.String() != test.want || got.Sharps != test.sharps {
			t.Errorf("%q: got %v with %d sharps, %v; want %s with %d", test.text, got, got.Sharps, ok, test.want, test.sharps)
		}
	}
	for _, text := range []string{"H", "Gx", "G7", "minor", "G#lyd", "1"} {
		if got, ok := parseKey(text); ok {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

func TestItems(t *testing.T) {
	t.Parallel()
	tune, diag := Parse(tuneOf(`"Am"^c'3/2- [K:G] {/g}[CE]2 |1 (3:2:3zxZ (A>B) :|2 .C & D "^hi"`))
	if !diag.Valid() {
		t.Fatal(diag.Err())
	}
	raw, err := json.Marshal(tune.Body)
	if err != nil {
		t.Fatal(err)
	}
	var items []struct {
		Kind   string
		Column int
	}
	if err := json.Unmarshal(raw, &items); err != nil {
		t.Fatal(err)
	}
	var got []string
	columns := []int{}
	for _, item := range items {
		got = append(got, item.Kind)
		columns = append(columns, item.Column)
	}
	want := strings.Fields("mark note field grace chord bar tuplet rest rest rest slur note broken note slur bar mark note overlay note mark")
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if want := []int{1, 5, 13, 19, 23, 29, 32}; !slices.Equal(columns[:7], want) {
		t.Errorf("columns: got %v, want %v", columns[:7], want)
	}
	note := tune.Body[1].(*Note)
	if note.Letter != "C" || note.Octave != 2 || *note.Accidental != 1 || note.Length != (Fraction{3, 2}) || !note.Tie {
		t.Errorf("note: got %+v", note)
	}
}

// FuzzParse checks that nothing panics, that a valid tune can be played or is
// refused by a limit, and that transposing changes only the pitch.
func FuzzParse(f *testing.F) {
	for _, text := range tunes(f) {
		f.Add(text, 3)
	}
	f.Add(tuneOf(`"Am"^c'3/2- [K:G exp ^f] {/g}[CE]2 |1,3 (3:2:3zxZ (A>B) :|2 .C & D "^hi" [I:MIDI program 3] [V:2 clef=bass] G`), -7)
	f.Add("P:((A9)9)9\nK:C\nP:A\n|::C::|", 1)
	f.Fuzz(func(t *testing.T, text string, semitones int) {
		tune, diag := Parse(text)
		Summarize(text)
		if _, err := json.Marshal(tune); err != nil {
			t.Fatal(err)
		}
		file, err := ToMIDI(tune, Options{})
		if err != nil {
			if fault.CodeOf(err) != fault.Limit {
				t.Fatal(err)
			}
			return
		}
		if _, err := file.Encode(); err != nil {
			t.Fatalf("encode: %v", err)
		}
		if !diag.Valid() {
			return
		}
		semitones %= 24
		moved, err := Transpose(text, semitones)
		if err != nil {
			if fault.CodeOf(err) != fault.InvalidParams {
				t.Fatal(err)
			}
			return
		}
		if slices.ContainsFunc(tune.Voices, (*Voice).percussive) {
			return
		}
		got, want := play(t, moved.ABC), play(t, text)
		for i := range want {
			if want[i].pitch += uint8(semitones); want[i].pitch > 126 || want[i].pitch < 1 {
				return // cut off at the edge
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("by %d\nfrom %q\nto   %q\ngot  %v\nwant %v", semitones, text, moved.ABC, got, want)
		}
	})
}
