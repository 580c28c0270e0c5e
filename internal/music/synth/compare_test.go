package synth_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"math/cmplx"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/music/audio"
	"github.com/luanette/luanette/internal/music/smf"
	"github.com/luanette/luanette/internal/music/synth"
)

func sorted(events []smf.Event) {
	slices.SortStableFunc(events, func(a, b smf.Event) int { return cmp.Compare(a.Time, b.Time) })
}

// How far FluidSynth and we may differ.
const (
	maxBand  = 1.5   // decibels in each third of an octave up to 8 kHz
	maxOnset = 0.010 // seconds
)

// TestLikeFluidSynth renders ten pieces with FluidSynth and here, and compares the
// spectrum of each side by thirds of an octave, and the onsets of notes.
func TestLikeFluidSynth(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("fluidsynth")
	if err != nil {
		t.Skip("fluidsynth is not installed (make system)")
	}
	rows := &table{}
	fonts := []string{"/usr/share/sounds/sf2/TimGM6mb.sf2", "/usr/share/sounds/sf2/FluidR3_GM.sf2"}
	if testing.Short() {
		fonts = fonts[:1]
	}
	for n, path := range fonts {
		raw, err := os.Open(path)
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = raw.Close() })
		stat, err := raw.Stat()
		if err != nil {
			t.Fatal(err)
		}
		font, err := synth.Load(raw, stat.Size())
		if err != nil {
			t.Fatal(err)
		}
		music := pieces()
		names := slices.Sorted(maps.Keys(music))
		if n > 0 && os.Getenv("UPDATE") == "" { // the pieces with the most instruments
			names = []string{"ensemble", "programs"}
		}
		for _, name := range names {
			t.Run(filepath.Base(path)+"/"+name, func(t *testing.T) {
				t.Parallel()
				c := compare(reference(t, program, path, music[name]), play(t, font, music[name], synth.Options{}), music[name])
				t.Log(c)
				rows.add(filepath.Base(path), name, c)
				if c.band > maxBand || c.onset > maxOnset || c.onsets < 5 {
					t.Errorf("want at most %g dB and %g ms", maxBand, 1000*maxOnset)
				}
			})
		}
	}
	t.Cleanup(func() { rows.write(t) })
}

// table is the comparison as docs/rendering.md shows it.
type table struct {
	mu    sync.Mutex
	rows  []string
	fonts map[string]bool
}

func (l *table) add(font, name string, d difference) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rows = append(l.rows, fmt.Sprintf("| %s | %s | %+.2f | %+.2f | %.2f | %.1f (%d) |\n", font, name, d.level, d.spread, d.band, 1000*d.onset, d.onsets))
	if l.fonts == nil {
		l.fonts = map[string]bool{}
	}
	l.fonts[font] = true
}

// write puts the table into the page, if UPDATE is set and both fonts were compared.
func (l *table) write(t *testing.T) {
	if os.Getenv("UPDATE") == "" || len(l.fonts) < 2 || len(l.rows) < 20 {
		return
	}
	const path, begin, end = "../../../docs/rendering.md", "|---|---|---|---|---|---|\n", "\n## Speed"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(page), begin)
	_, tail, too := strings.Cut(rest, end)
	if !ok || !too {
		t.Fatalf("%s has no table before %q", path, end)
	}
	slices.Sort(l.rows)
	if err := os.WriteFile(path, []byte(head+begin+strings.Join(l.rows, "")+end+tail), 0o600); err != nil {
		t.Fatal(err)
	}
}

// reference renders with FluidSynth.
func reference(t *testing.T, program, font string, music *smf.File) audio.Clip {
	t.Helper()
	raw, err := music.Encode()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	in, out := filepath.Join(folder, "music.mid"), filepath.Join(folder, "music.wav")
	if err := os.WriteFile(in, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-ni", "-q", "-r", "44100", "-g", "0.2", "-T", "wav", "-O", "float", "-F", out, font, in}
	if text, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if raw, err = os.ReadFile(out); err != nil {
		t.Fatal(err)
	}
	clip, _, err := audio.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	return clip
}

// difference is how far two renderings differ.
type difference struct {
	band   float64 // the most in a third of an octave, in decibels
	where  string
	bands  int
	level  float64 // of the whole, in decibels
	spread float64 // of the difference of both sides, in decibels
	onset  float64 // the most of a note, in seconds
	onsets int
}

func (d difference) String() string {
	return fmt.Sprintf("level %+.2f dB, spread %+.2f dB, spectrum at most %.2f dB (%s; %d bands), onsets at most %.1f ms (%d)", d.level, d.spread, d.band, d.where, d.bands, 1000*d.onset, d.onsets)
}

func compare(want, got audio.Clip, music *smf.File) (d difference) {
	length := min(want.Seconds(), got.Seconds())
	want, got = want.Trim(0, length), got.Trim(0, length)
	d.level = audio.Decibels(got.RMS()) - audio.Decibels(want.RMS())
	d.spread = audio.Decibels(sides(got).RMS()) - audio.Decibels(sides(want).RMS())
	for side := range 2 {
		a, b := bands(channel(want, side).Samples, channel(got, side).Samples, want.Rate)
		loudest := slices.Max(a)
		for i := range a {
			if a[i] < loudest-60 {
				continue
			}
			d.bands++
			if diff := math.Abs(b[i] - a[i]); diff > d.band {
				d.band, d.where = diff, fmt.Sprintf("%.0f Hz, side %d, %+.0f dB", bandHz(i), side, a[i]-loudest)
			}
		}
	}
	for _, shift := range onsets(want, got, music) {
		d.onsets++
		d.onset = max(d.onset, math.Abs(shift))
	}
	return d
}

// sides is the difference of left and right.
func sides(c audio.Clip) audio.Clip {
	out := channel(c, 0)
	for i := range out.Samples {
		out.Samples[i] -= c.Samples[2*i+1]
	}
	return out
}

func channel(c audio.Clip, n int) audio.Clip {
	out := audio.Clip{Channels: 1, Rate: c.Rate}
	for i := n; i < len(c.Samples); i += c.Channels {
		out.Samples = append(out.Samples, c.Samples[i])
	}
	return out
}

// bandHz is the middle of a third of an octave: from 50 Hz to 8 kHz.
func bandHz(i int) float64 { return 1000 * math.Pow(2, float64(i-13)/3) }

const (
	bandCount = 23
	bandSize  = 8192 // frames of a transform
)

// bands is the power of two sounds in each third of an octave, in decibels. One transform
// serves both: one is its real part, the other its imaginary part.
func bands(a, b []float32, rate int) (powerA, powerB []float64) {
	const size = bandSize
	band := make([]int, size/2)
	for k := range band {
		band[k] = int(math.Round(3*math.Log2(float64(k)*float64(rate)/size/1000))) + 13
	}
	powerA, powerB = make([]float64, bandCount), make([]float64, bandCount)
	x := make([]complex128, size)
	for at := 0; at+size <= min(len(a), len(b)); at += size / 2 {
		for i, factor := range window {
			x[i] = complex(float64(a[at+i])*factor, float64(b[at+i])*factor)
		}
		fft(x)
		for k := 1; k < size/2; k++ {
			if i := band[k]; i >= 0 && i < bandCount {
				p, q := x[k], cmplx.Conj(x[size-k])
				powerA[i] += squared(p+q) / 4
				powerB[i] += squared(p-q) / 4
			}
		}
	}
	for i := range bandCount {
		powerA[i], powerB[i] = 10*math.Log10(powerA[i]+1e-9), 10*math.Log10(powerB[i]+1e-9)
	}
	return powerA, powerB
}

func squared(x complex128) float64 { return real(x)*real(x) + imag(x)*imag(x) }

// window and turns are the weights and the factors of an FFT.
var window, turns = func() (window [bandSize]float64, turns [bandSize / 2]complex128) {
	for i := range window {
		window[i] = 0.5 - 0.5*math.Cos(2*math.Pi*float64(i)/bandSize)
	}
	for i := range turns {
		turns[i] = cmplx.Rect(1, -2*math.Pi*float64(i)/bandSize)
	}
	return window, turns
}()

// fft transforms in place, with the values in the order of their bits reversed first.
func fft(x []complex128) {
	shift := 64 - bits.Len(uint(len(x)-1))
	for i := range x {
		if j := int(bits.Reverse64(uint64(i)) >> shift); j > i {
			x[i], x[j] = x[j], x[i]
		}
	}
	for half := 1; half < len(x); half *= 2 {
		for at := 0; at < len(x); at += 2 * half {
			for i := range half {
				a, b := x[at+i], x[at+i+half]*turns[i*(bandSize/2/half)]
				x[at+i], x[at+i+half] = a+b, a-b
			}
		}
	}
}

// onsets finds how many seconds later each note begins in one rendering than in
// another: the shift at which the two are most alike around its onset. It counts the
// notes that are clearly louder than what sounded before.
func onsets(want, got audio.Clip, music *smf.File) (shifts []float64) {
	levels, last := envelope(want), int64(-1)
	a, b := sharpened(want.Mono().Samples, 1), sharpened(got.Mono().Samples, 1)
	tempo := smf.TempoMapOf(music.Division, music.Tracks...)
	for _, e := range music.Tracks[0].Events {
		at := int(1000 * tempo.Seconds(e.Time))
		if !e.Starts() || e.Time == last || at < 30 || at+150 > len(levels) {
			continue
		}
		last = e.Time
		if before, most := slices.Max(levels[at-15:at]), slices.Max(levels[at:at+60]); most > 1.3*before && most > 1e-5 {
			shifts = append(shifts, shift(a, b, at*want.Rate/1000, want.Rate))
		}
	}
	return shifts
}

// shift is the shift of b against a near a frame, in seconds, up to 20 ms.
func shift(a, b []float32, at, rate int) float64 {
	a = a[at-rate/100:][:(rate/100+rate/10)&^3]
	best, most, power := 0, math.Inf(-1), 1e-12
	for _, s := range b[at-rate/100-rate/50:][:len(a)] {
		power += float64(s) * float64(s)
	}
	for lag := -rate / 50; lag <= rate/50; lag++ {
		moved := b[at-rate/100+lag:][:len(a)+1]
		var sums [4]float32 // a single one would wait for each addition
		for i := 0; i < len(a); i += 4 {
			x, y := a[i:i+4:i+4], moved[i:i+4:i+4]
			sums[0] += x[0] * y[0]
			sums[1] += x[1] * y[1]
			sums[2] += x[2] * y[2]
			sums[3] += x[3] * y[3]
		}
		if alike := float64(sums[0]+sums[1]+sums[2]+sums[3]) / math.Sqrt(power); alike > most {
			best, most = lag, alike
		}
		first, next := float64(moved[0]), float64(moved[len(a)])
		power = max(power+next*next-first*first, 1e-12)
	}
	return float64(best) / float64(rate)
}

// envelope is the level of every millisecond, over the 10 ms around it. High
// frequencies count more: they are what begins suddenly.
func envelope(c audio.Clip) []float64 {
	sharp := sharpened(c.Samples, 2)
	var out []float64
	for ms := 0; ; ms++ {
		from, to := max(0, (ms-5)*c.Rate/1000), (ms+5)*c.Rate/1000
		if to > c.Frames() {
			return out
		}
		sum := 0.0
		for _, s := range sharp[2*from : 2*to] {
			sum += float64(s) * float64(s)
		}
		out = append(out, math.Sqrt(sum/float64(2*(to-from))))
	}
}

// sharpened is how much each sample differs from the one before, a step back.
func sharpened(samples []float32, step int) []float32 {
	out := make([]float32, len(samples))
	for i := step; i < len(out); i++ {
		out[i] = samples[i] - samples[i-step]
	}
	return out
}
