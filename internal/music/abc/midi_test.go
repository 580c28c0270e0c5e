package abc

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/music/smf"
)

// played parses and plays a text.
func played(t *testing.T, text string, opts Options) *smf.File {
	t.Helper()
	tune, diag := Parse(text)
	if err := diag.Err(); err != nil {
		t.Fatal(err)
	}
	file, err := ToMIDI(tune, opts)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// pitches plays music and returns the letters of its notes in order.
func pitches(t *testing.T, text string) string {
	t.Helper()
	var out strings.Builder
	for _, h := range listen(played(t, text, Options{})) {
		out.WriteByte("CcDdEFfGgAaB"[h.pitch%12])
	}
	return out.String()
}

func TestToMIDI(t *testing.T) {
	t.Parallel()
	file := played(t, "X:1\nT:Name\nM:3/4\nL:1/4\nQ:1/4=100\nK:Gm\nG2 [GB] |]\n", Options{})
	want := []smf.Event{
		smf.TextEvent(0, smf.TrackName, "Name"), smf.SetTempo(0, 600_000), smf.SetMeter(0, 3, 4), smf.SetKey(0, -2, true),
		smf.Note(0, 0, 67, 105), smf.Release(960, 0, 67), smf.Note(960, 0, 67, 80), smf.Note(960, 0, 70, 80),
		smf.Release(1440, 0, 67), smf.Release(1440, 0, 70), smf.End(1440),
	}
	smf.Deltas(want)
	if got := file.Tracks[0].Events; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if file.Format != 0 || len(file.Tracks) != 1 || file.Division.TicksPerBeat != 480 {
		t.Errorf("got format %d, %d tracks, %+v", file.Format, len(file.Tracks), file.Division)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	file := played(t, "X:1\nT:t\nL:1/4\nQ:1/4=60\nK:C\nC [Q:1/4=90] D\nV:2\nE\n",
		Options{Velocity: 100, Channel: 3, TicksPerBeat: 96, Tempo: 200, Transpose: 12})
	info := file.Info()
	if info.TempoBPM != 200 || len(info.TempoChanges) != 1 || !slices.Equal(info.Channels, []int{3}) || info.TicksPerBeat != 96 {
		t.Errorf("got %+v", info)
	}
	first := file.Tracks[0].Events[slices.IndexFunc(file.Tracks[0].Events, smf.Event.Starts)]
	if first.Data1 != 72 || first.Data2 != 125 {
		t.Errorf("got %+v", first)
	}
}

func TestDynamics(t *testing.T) {
	t.Parallel()
	var got []uint8
	for _, e := range played(t, tuneOf("C !p!D E !fff!F !mf!G2 [A!f!c]"), Options{}).Tracks[0].Events {
		if e.Starts() {
			got = append(got, e.Data2)
		}
	}
	if want := []uint8{105, 35, 50, 110, 80, 95, 95}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestLyrics(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, music, want string }{
		{"plain", "CDEF|\nw:one two-three four", "one |two-|three |four "},
		{"skips and holds", "CDEF GA|\nw:a * b_ c", "a |b |c "},
		{"hyphens", "CDE|\nw:well\\-known~thing- - all", "well-known thing-|all "},
		{"bars", "CD|EF|\nw:a | b c", "a |b |c "},
		{"rests, chords and grace notes have no part", "C z {g}[CE] D|\nw:a b c d", "a |b |c "},
		{"line by line", "CD|\nw:a b\nEF|\nw:c d", "a |b |c |d "},
		{"verses", "|: CD :|\nw:a b\nw:c d", "a |b |c |d "},
		{"one voice sings", "[V:1] C|\nw:a\n[V:2] D|\nw:b", "a "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, e := range played(t, tuneOf(test.music), Options{}).Tracks[0].Events {
				if e.Is(smf.Lyric) {
					got = append(got, string(e.Bytes))
				}
			}
			if strings.Join(got, "|") != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for _, opts := range []Options{{Velocity: 128}, {Velocity: -1}, {Channel: 16}, {Channel: -1}, {TicksPerBeat: 40000}, {Tempo: -1}, {Tempo: 1e9}} {
		tune, _ := Parse(tuneOf("C"))
		if _, err := ToMIDI(tune, opts); fault.CodeOf(err) != fault.InvalidParams {
			t.Errorf("%+v: got %v", opts, err)
		}
	}
}

func TestInstruments(t *testing.T) {
	t.Parallel()
	file := played(t, "X:1\nT:t\n%%MIDI program 24\nK:C\nV:1\nC\nV:2\n%%MIDI channel 10\nC\nV:3 clef=perc\nC\nV:4\n%%MIDI program 6 40\nC\n", Options{Transpose: 1})
	programs := map[uint8]uint8{}
	notes := map[uint8][]uint8{}
	for _, e := range file.Tracks[0].Events {
		switch {
		case e.Kind == smf.ProgramChange:
			programs[e.Channel] = e.Data1
		case e.Starts():
			notes[e.Channel] = append(notes[e.Channel], e.Data1)
		}
	}
	if want := map[uint8]uint8{0: 24, 1: 24, 9: 24, 3: 24, 5: 40}; !reflect.DeepEqual(programs, want) {
		t.Errorf("programs: got %v, want %v", programs, want)
	}
	if want := map[uint8][]uint8{0: {61}, 9: {60, 60}, 3: {61}}; !reflect.DeepEqual(notes, want) {
		t.Errorf("notes: got %v, want %v", notes, want)
	}
}

func TestRepeats(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, music, want string }{
		{"twice", "|: CD :| E", "CDCDE"},
		{"from the start", "CD :| E", "CDCDE"},
		{"thrice", "|:: C ::| D", "CCCD"},
		{"double colon", "|: C :: D :|", "CCDD"},
		{"endings", "|: C |1 D :|2 E |] F", "CDCEF"},
		{"endings apart", "|: C | [1 D :| [2 E |] F", "CDCEF"},
		{"ending on a new line", "|: C |1 D :|\n[2 E |] F", "CDCEF"},
		{"lists of endings", "|: C |1,3 D :|2 E :|4 F |]", "CDCECDCF"},
		{"ranges of endings", "|: C |1-2 D :|3 E |]", "CDCDCE"},
		{"only a first ending", "|: C |1 D :| E", "CDCE"},
		{"ending never closed", "C |1 D |2 E", "CDE"},
		{"double bar begins", "C || D :| E", "CDDE"},
		{"double bar inside", "|: C || D :|", "CDCD"},
		{"double bar after endings", "|: C |1 D :|2 E || F :|", "CDCEFF"},
		{"endings without a beginning", "C |1 D :|2 E || F |1 G :|2 A |]", "CDCEFGFA"},
		{"parts without order", "P:A\nC\nP:B\nD", "CD"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := pitches(t, tuneOf(test.music)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestParts(t *testing.T) {
	t.Parallel()
	for order, want := range map[string]string{
		"AB": "CDD", "BA": "DDC", "A2.B": "CCDD", "(AB)2": "CDDCDD", "(A(B)2)2A": "CDDDDCDDDDC",
		"A(": "CDD", "A)": "CDD", "B?A": "CDD", "B": "CDD", "AXB": "CDD", "(((A99)99)99)99": "CDD",
	} {
		text := "X:1\nT:t\nP:" + order + "\nK:C\nP:A\nC |\nP:B\n|: D :|\n"
		if got := pitches(t, text); got != want {
			t.Errorf("%s: got %s, want %s", order, got, want)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"steps":   "X:1\nT:t\nP:(A99)99\nK:C\nP:A\n" + strings.Repeat("C", 100),
		"repeats": tuneOf("|" + strings.Repeat(":", 15) + strings.Repeat("[CEGceg]", 10_000) + strings.Repeat(":", 15) + "|"),
		"ticks":   "X:1\nT:t\nL:64\nK:C\n[C9999E9999]|",
		"time":    tuneOf(strings.Repeat("C9999", 5000) + "|" + strings.Repeat("Z1000", 2000)),
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tune, _ := Parse(text)
			_, err := ToMIDI(tune, Options{})
			if fault.CodeOf(err) != fault.Limit || fault.HintOf(err) == "" {
				t.Errorf("got %v, want %s", err, fault.Limit)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	text := tuneOf(strings.Repeat("|: CDEF GABc | c2B2 A2G2 | [CEG]4 (3ABc d2 |1 C8 :|2 c8 |]\n", 50))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		Parse(text)
	}
}

func BenchmarkToMIDI(b *testing.B) {
	text := tuneOf(strings.Repeat("|: CDEF GABc | c2B2 A2G2 | [CEG]4 (3ABc d2 |1 C8 :|2 c8 |]\n", 50))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		tune, _ := Parse(text)
		if _, err := ToMIDI(tune, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
