package abc

import (
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/music/smf"
)

// TestWarnsOfWhatIsNotPlayed: each text has something that has no sound, or not the
// one that is meant.
func TestWarnsOfWhatIsNotPlayed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"%%MIDI bendstring 1 2\nC":           "line 6, column 1: %%MIDI bendstring is not supported and has no effect",
		"%%MIDI program 128\nC":              "line 6, column 1: %%MIDI program 128 has no effect: its values are missing or out of range",
		"%%MIDI program\nC":                  "line 6, column 1: %%MIDI program has no effect",
		"%%MIDI gchord fxc\nC":               "line 6, column 1: %%MIDI gchord fxc has no effect",
		"%%MIDI drum\nC":                     "line 6, column 1: %%MIDI drum has no effect",
		"%%MIDI beatstring abc\nC":           "line 6, column 1: %%MIDI beatstring abc has no effect",
		"!turn!C !turn!D":                    "line 6, column 1: the decoration turn is not played",
		"MC":                                 "line 6, column 1: the decoration lowermordent is not played",
		"hC":                                 "line 6, column 1: the decoration h is not played",
		`"Slowly"C`:                          `line 6, column 1: "Slowly" is not a chord and is not played; texts begin with ^ or _`,
		`"Cfoo"C`:                            `line 6, column 1: the chord "Cfoo" is not known and is played as a major chord`,
		"T[CE]2":                             "line 6, column 3: trills and rolls of chords are not played",
		"[M:3/2]\"C\"C12":                    "line 6, column 8: the meter 3/2 has no pattern for chords; %%MIDI gchord sets one",
		"[M:3/4][R:hornpipe]C6":              "line 6, column 8: R:hornpipe has no effect: the meter is not 4/4 or 2/4",
		"U:T trill\nC":                       `line 6, column 1: U: "T trill" is not a symbol and is ignored`,
		"U:C=!trill!\nC":                     `line 6, column 1: U: "C=!trill!" is not a symbol`,
		"m:x\nC":                             `line 6, column 1: m: "x" is not a macro and is ignored`,
		"V:1\nC\nV:2\n%%MIDI foo\nD\nV:3\nE": "line 9, column 1: %%MIDI foo is not supported",
	} {
		_, diag := Parse(tuneOf(text))
		if len(diag.Errors) > 0 || len(diag.Warnings) != 1 || !strings.HasPrefix(diag.Warnings[0].String(), want) {
			t.Errorf("%q: got %v", text, diag)
		}
	}
	_, diag := Parse(tuneOf(`uC vD !1!E !tenuto!F "^text"G "_below"A .B !trill!c` + "\n%%score 1\n%%scale 0.7"))
	if len(diag.Warnings) != 0 {
		t.Errorf("got %v", diag.Warnings)
	}
}

func TestSymbolsAndMacros(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"m:~G3 = G{A}G{F}G\n~G3 C":       "GAGFGC",
		"m:~n3 = n{o}n{m}n\n~c3 ~B2":     "CDCBCCB", // ~B2 is a grace note from above
		"m:~n = nop\n~G ~b":              "GABBCD",
		"m:~n2 = mn\nm:~n3 = on\n~G3~G2": "AGFG", // the longer target first
		"U:N=!roll!\nNC":                 "CDCBC",
		"U:h=!roll!\nU:h=!nil!\nhC":      "C",
		`U:W="^up"` + "\nWC":             "C",
	} {
		if got := pitches(t, tuneOf(text)); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func TestMacrosAreBounded(t *testing.T) {
	t.Parallel()
	_, diag := Parse(tuneOf("m:AB=" + strings.Repeat("C", 190) + "\n" + strings.Repeat("AB", 10_000)))
	if diag.Valid() || !strings.Contains(diag.Err().Error(), "the macros of the tune make more than") {
		t.Errorf("got %v", diag.Err())
	}
}

// TestTrillsAreBounded: a note of a million bars would have thirty million notes.
func TestTrillsAreBounded(t *testing.T) {
	t.Parallel()
	tune, _ := Parse("X:1\nT:t\nL:64\nK:C\n%%MIDI drum " + strings.Repeat("d", 200) + "\n%%MIDI drumon\n" + strings.Repeat(`"C"TC9999`, 20))
	if _, err := ToMIDI(tune, Options{TicksPerBeat: 1}); err != nil && fault.CodeOf(err) != fault.Limit {
		t.Error(err)
	}
}

func TestMicrotonesBend(t *testing.T) {
	t.Parallel()
	var got []int
	for _, e := range played(t, tuneOf("^/C C ^C D _3/4E | C ^3G"), Options{}).Tracks[0].Events {
		if e.Kind == smf.PitchBend {
			got = append(got, e.Bend())
		}
	}
	if want := []int{2048, 0, -3072, 0, 8191}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAccompanimentHasItsOwnChannels(t *testing.T) {
	t.Parallel()
	text := "X:1\nT:t\nM:4/4\nL:1/8\nK:C\nV:1\n%%MIDI chordprog 24\n\"C\"C8|\nV:2\n\"G\"D8|\n%%MIDI drum d 36\n%%MIDI drumon\nD8|\n"
	channels := map[uint8]int{}
	for _, e := range played(t, text, Options{}).Tracks[0].Events {
		if e.Starts() {
			channels[e.Channel]++
		}
	}
	for channel, count := range map[uint8]int{0: 1, 1: 2, 2: 2, 3: 6, 4: 4, 5: 12, 9: 1} {
		if channels[channel] != count {
			t.Errorf("channel %d: %d notes, want %d", channel, channels[channel], count)
		}
	}
	for _, e := range played(t, text, Options{Channel: 3}).Tracks[0].Events {
		if e.Starts() && e.Channel != 3 && e.Channel != drums {
			t.Errorf("got a note on channel %d", e.Channel)
		}
	}
}

// TestVelocityMovesAllBeats: the option is the velocity of weak beats.
func TestVelocityMovesAllBeats(t *testing.T) {
	t.Parallel()
	var got []uint8
	for _, e := range played(t, tuneOf("C2D2E2 !p!F2 LG2"), Options{Velocity: 60}).Tracks[0].Events {
		if e.Starts() {
			got = append(got, e.Data2)
		}
	}
	if want := []uint8{85, 60, 75, 30, 45}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
