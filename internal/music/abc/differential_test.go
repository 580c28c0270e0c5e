package abc

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/music/smf"
)

// playedNote is a sounding note, in ticks.
type playedNote struct {
	pitch      uint8
	start, end int64
}

func (h playedNote) String() string { return fmt.Sprintf("%d at %d–%d", h.pitch, h.start, h.end) }

// listen lists the notes of a file.
func listen(f *smf.File) []playedNote {
	var notes []playedNote
	type key struct{ track, channel, note int }
	sounding := map[key][]int{}
	for i, track := range f.Tracks {
		for _, e := range track.Events {
			k := key{i, int(e.Channel), int(e.Data1)}
			switch {
			case e.Starts():
				sounding[k] = append(sounding[k], len(notes))
				notes = append(notes, playedNote{pitch: e.Data1, start: e.Time})
			case e.Stops() && len(sounding[k]) > 0:
				notes[sounding[k][0]].end = e.Time
				sounding[k] = sounding[k][1:]
			}
		}
	}
	return notes
}

// tunes returns the test tunes, which together use every feature of the notation.
func tunes(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/tunes/*.abc")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tunes: %v", err)
	}
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[strings.TrimSuffix(filepath.Base(file), ".abc")] = string(text)
	}
	return texts
}

// TestAgreesWithAbc2midi plays every tune with Debian's abc2midi too and
// compares the notes.
func TestAgreesWithAbc2midi(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("abc2midi")
	if err != nil {
		t.Skip("abc2midi is not installed (make system, or Debian's package abcmidi)")
	}
	for name, text := range tunes(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := listenTo(t, program, text)
			tune, diag := Parse(text)
			if !diag.Valid() {
				t.Fatal(diag.Err())
			}
			file, err := ToMIDI(tune, Options{})
			if err != nil {
				t.Fatal(err)
			}
			compare(t, listen(file), want)
		})
	}
}

// listenTo lists the notes that abc2midi makes of a text, without the
// accompaniment, the dynamics and the arpeggios it adds by itself.
func listenTo(t *testing.T, program, text string) []playedNote {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "tune.abc"), filepath.Join(dir, "tune.mid")
	text = strings.Replace(text, "\nK:", "\n%%MIDI chordattack 0\nK:", 1)
	if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command(program, in, "-o", out, "-NGUI", "-NFNP", "-NCOM").CombinedOutput()
	if err != nil {
		t.Fatalf("abc2midi: %v\n%s", err, said)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	file, err := smf.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return listen(file)
}

// compare allows for abc2midi's manner of starting notes a tick late, and for
// rounding.
func compare(t *testing.T, got, want []playedNote) {
	t.Helper()
	order := func(a, b playedNote) int {
		return cmp.Or(cmp.Compare(a.end/8, b.end/8), cmp.Compare(a.pitch, b.pitch), cmp.Compare(a.start, b.start))
	}
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	if len(got) != len(want) {
		t.Errorf("got %d notes, want %d\ngot  %v\nwant %v", len(got), len(want), got, want)
		return
	}
	for i, g := range got {
		w := want[i]
		late := w.start - g.start
		if g.pitch != w.pitch || late < -2 || late > 3 || max(g.end-w.end, w.end-g.end) > 2 {
			t.Errorf("note %d: got %v, want %v\ngot  %v\nwant %v", i, g, w, got, want)
			return
		}
	}
}
