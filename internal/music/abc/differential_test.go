package abc

import (
	"cmp"
	"fmt"
	"math"
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
	for _, n := range heard(f) {
		notes = append(notes, n.playedNote)
	}
	return notes
}

// heardNote is a note with its loudness and whether it is a drum.
type heardNote struct {
	playedNote
	velocity uint8
	drum     bool
}

func heard(f *smf.File) []heardNote {
	var notes []heardNote
	type key struct{ track, channel, note int }
	on := map[key][]int{}
	for i, track := range f.Tracks {
		for _, e := range track.Events {
			k := key{i, int(e.Channel), int(e.Data1)}
			switch {
			case e.Starts():
				on[k] = append(on[k], len(notes))
				notes = append(notes, heardNote{playedNote{pitch: e.Data1, start: e.Time}, e.Data2, e.Channel == drums})
			case e.Stops() && len(on[k]) > 0:
				notes[on[k][0]].end = e.Time
				on[k] = on[k][1:]
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

// timedNote is a note in milliseconds.
type timedNote struct {
	start, length   int
	pitch, velocity int
	drum            bool
}

func (n timedNote) String() string {
	text := fmt.Sprintf("%d %d %d %d", n.start, n.length, n.pitch, n.velocity)
	if n.drum {
		text += " drum"
	}
	return text
}

func timed(f *smf.File) []timedNote {
	tempo := smf.TempoMapOf(f.Division, f.Tracks...)
	var list []timedNote
	for _, n := range heard(f) {
		start, end := tempo.Seconds(n.start), tempo.Seconds(n.end)
		list = append(list, timedNote{round(1000 * start), round(1000 * (end - start)), int(n.pitch), int(n.velocity), n.drum})
	}
	slices.SortFunc(list, func(a, b timedNote) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.pitch, b.pitch), cmp.Compare(a.velocity, b.velocity), cmp.Compare(a.length, b.length))
	})
	return list
}

func round(x float64) int { return int(math.Round(x)) }

// tolerance is how far onsets and lengths may differ, in milliseconds.
const tolerance = 10

// difference compares our notes with abc2midi's: each of theirs is paired with ours of
// the same pitch, in the order of time. It is empty if they are equal.
func difference(ours, theirs []timedNote) string {
	type voice struct {
		pitch int
		drum  bool
	}
	byPitch := map[voice][]timedNote{}
	for _, n := range ours {
		byPitch[voice{n.pitch, n.drum}] = append(byPitch[voice{n.pitch, n.drum}], n)
	}
	var missing, late, longer, louder int
	for _, want := range theirs {
		key := voice{want.pitch, want.drum}
		if len(byPitch[key]) == 0 {
			missing++
			continue
		}
		got := byPitch[key][0]
		byPitch[key] = byPitch[key][1:]
		late += differs(got.start, want.start, tolerance)
		longer += differs(got.length, want.length, tolerance)
		louder += differs(got.velocity, want.velocity, 0)
	}
	extra := len(ours) - (len(theirs) - missing)
	var list []string
	for _, d := range []struct {
		count int
		text  string
	}{{missing, "missing"}, {extra, "more"}, {late, "at another time"}, {longer, "of another length"}, {louder, "of another velocity"}} {
		if d.count > 0 {
			list = append(list, fmt.Sprintf("%d %s", d.count, d.text))
		}
	}
	return strings.Join(list, ", ")
}

func differs(a, b, by int) int {
	if a-b > by || b-a > by {
		return 1
	}
	return 0
}

// TestPlaysAsAbc2midiDoes compares pitch, onset, length and velocity of all notes of
// all tunes with those that abc2midi plays, which are in testdata/abc2midi. UPDATE=1
// makes them again. A tune that differs says why in a comment; all differences are in
// testdata/differences.txt.
func TestPlaysAsAbc2midiDoes(t *testing.T) {
	t.Parallel()
	program := installed(t)
	texts := tunes(t)
	var report strings.Builder
	equal := 0
	for _, name := range sortedKeys(texts) {
		text := texts[name]
		theirs := theirNotes(t, program, name, text)
		diff := difference(timed(played(t, text, Options{})), theirs)
		reasons := reasonsOf(text)
		switch {
		case diff == "":
			equal++
			fmt.Fprintf(&report, "%s: equal, %d notes\n", name, len(theirs))
		default:
			fmt.Fprintf(&report, "%s: of %d notes %s\n", name, len(theirs), diff)
			for _, r := range reasons {
				fmt.Fprintf(&report, "\t%s\n", r)
			}
		}
		if (diff == "") != (len(reasons) == 0) {
			t.Errorf("%s: differs by %q, and its reasons are %q", name, diff, reasons)
		}
	}
	fmt.Fprintf(&report, "%d of %d tunes are equal within %d ms\n", equal, len(texts), tolerance)
	if len(texts) < 60 || equal*60 < 50*len(texts) {
		t.Errorf("%d of %d tunes are equal", equal, len(texts))
	}
	golden(t, "testdata/differences.txt", report.String())
}

// installed is the path of abc2midi if it is the version whose notes are stored, else
// empty: then only the stored notes count.
func installed(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("abc2midi")
	if err != nil {
		return ""
	}
	version, err := exec.CommandContext(t.Context(), program, "-ver").Output()
	if err != nil {
		t.Fatal(err)
	}
	const path = "testdata/abc2midi/VERSION"
	if os.Getenv("UPDATE") != "" {
		golden(t, path, string(version))
	}
	if stored, err := os.ReadFile(path); err != nil || string(stored) != string(version) {
		return ""
	}
	return program
}

// reasonsOf are the comments of a tune that say why it differs.
func reasonsOf(text string) (list []string) {
	for line := range strings.Lines(text) {
		if reason, ok := strings.CutPrefix(line, "% differs: "); ok {
			list = append(list, strings.TrimSpace(reason))
		}
	}
	return list
}

func sortedKeys(m map[string]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// golden compares with a file, or writes it when UPDATE is set.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; look at the change, then UPDATE=1 go test ./internal/music/abc\ngot:\n%s", path, got)
	}
}

// theirNotes are the notes that abc2midi plays: as stored, and where the program is
// installed the stored ones must be those of today.
func theirNotes(t *testing.T, program, name, text string) []timedNote {
	t.Helper()
	path := filepath.Join("testdata/abc2midi", name+".txt")
	if program != "" {
		var lines strings.Builder
		for _, n := range listenTo(t, program, text) {
			fmt.Fprintln(&lines, n)
		}
		golden(t, path, lines.String())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var list []timedNote
	for line := range strings.Lines(string(data)) {
		n := timedNote{drum: strings.HasSuffix(line, "drum\n")}
		if _, err := fmt.Sscan(line, &n.start, &n.length, &n.pitch, &n.velocity); err != nil {
			t.Fatalf("%s: %q: %v", path, line, err)
		}
		list = append(list, n)
	}
	return list
}

// listenTo runs abc2midi.
func listenTo(t *testing.T, program, text string) []timedNote {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "tune.abc"), filepath.Join(dir, "tune.mid")
	if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), program, in, "-o", out).CombinedOutput()
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
	return timed(file)
}
