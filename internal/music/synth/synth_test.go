package synth_test

import (
	"bytes"
	"context"
	"io"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/music/audio"
	"github.com/luanette/luanette/internal/music/smf"
	"github.com/luanette/luanette/internal/music/soundfont/soundfonttest"
	"github.com/luanette/luanette/internal/music/synth"
)

func load(t testing.TB, raw []byte) *synth.Font {
	t.Helper()
	f, err := synth.Load(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// song plays keys one after another, half a second each.
func song(program uint8, velocity uint8, keys ...uint8) *smf.File {
	events := []smf.Event{smf.SetTempo(0, 500_000), smf.Program(0, 0, program)}
	for i, key := range keys {
		at := int64(i) * 480
		events = append(events, smf.Note(at, 0, key, velocity), smf.Release(at+480, 0, key))
	}
	return &smf.File{Tracks: []smf.Track{{Events: append(events, smf.End(int64(len(keys))*480))}}}
}

func play(t *testing.T, f *synth.Font, music *smf.File, o synth.Options) audio.Clip {
	t.Helper()
	clip, _ := played(t, f, music, o)
	return clip
}

func played(t *testing.T, f *synth.Font, music *smf.File, o synth.Options) (audio.Clip, synth.Result) {
	t.Helper()
	var out bytes.Buffer
	result, err := f.Play(t.Context(), &out, music, o)
	if err != nil {
		t.Fatal(err)
	}
	clip, format, err := audio.Decode(out.Bytes())
	if err != nil || format.Bits != 16 || clip.Channels != 2 || clip.Frames() != result.Frames || clip.Rate != result.Rate {
		t.Fatalf("%+v at %d Hz, %d channels, %d frames, %v; said %+v", format, clip.Rate, clip.Channels, clip.Frames(), err, result)
	}
	return clip, result
}

// pitch finds the fundamental of a clip: the frequency of a MIDI key that is
// strongest together with its overtones.
func pitch(c audio.Clip) (key int) {
	mono, best := c.Mono(), 0.0
	for k := 30; k <= 100; k++ {
		hz := 440 * math.Pow(2, float64(k-69)/12)
		sum := 0.0
		for n := 1.0; n <= 4 && n*hz < float64(c.Rate)/2; n++ {
			sum += strength(mono, n*hz) / n
		}
		if sum > best {
			best, key = sum, k
		}
	}
	return key
}

func strength(c audio.Clip, hz float64) float64 {
	var re, im float64
	for i, s := range c.Samples {
		turn := 2 * math.Pi * hz * float64(i) / float64(c.Rate)
		window := 0.5 - 0.5*math.Cos(2*math.Pi*float64(i)/float64(len(c.Samples)))
		re, im = re+window*float64(s)*math.Cos(turn), im+window*float64(s)*math.Sin(turn)
	}
	return math.Hypot(re, im) / float64(len(c.Samples))
}

func TestPitchAndLength(t *testing.T) {
	t.Parallel()
	keys := []uint8{57, 69, 72, 76}
	clip := play(t, load(t, soundfonttest.Font()), song(0, 100, keys...), synth.Options{Rate: 22050})
	if got, least := clip.Seconds(), float64(len(keys))/2; got < least || got > least+3 {
		t.Errorf("%g seconds, want %g and a tail", got, least)
	}
	for i, key := range keys {
		at := float64(i) / 2
		if got := pitch(clip.Trim(at+0.15, at+0.45)); got != int(key) {
			t.Errorf("note %d sounds as key %d, want %d", i, got, key)
		}
	}
	if end := clip.Trim(clip.Seconds()-0.00005, clip.Seconds()).Peak(); end > 0.002 {
		t.Errorf("the last frame is at %g", end)
	}
}

func TestLoudnessFollowsVelocity(t *testing.T) {
	t.Parallel()
	font := load(t, soundfonttest.Font())
	loud := play(t, font, song(0, 120, 69), synth.Options{Rate: 22050}).Trim(0.1, 0.4).Info()
	soft := play(t, font, song(0, 40, 69), synth.Options{Rate: 22050}).Trim(0.1, 0.4).Info()
	// A velocity counts twice as many decibels as its ratio.
	if got, want := loud.MeanDB-soft.MeanDB, 40*math.Log10(120.0/40); math.Abs(got-want) > 1.5 {
		t.Errorf("%g dB apart, want %g", got, want)
	}
	if loud.PeakDB > 0 || loud.PeakDB < -30 || loud.IsSilent {
		t.Errorf("loud: %+v", loud)
	}
	if struck := play(t, font, song(5, 50, 72), synth.Options{Rate: 22050}).Info(); !struck.IsSilent {
		t.Errorf("a key that needs a hard stroke sounds: %+v", struck)
	}
}

// TestRealFont renders a scale with a real font and checks its pitches.
func TestRealFont(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("/usr/share/sounds/sf2/TimGM6mb.sf2")
	if err != nil {
		t.Skip("no soundfont is installed (make system, or Debian's package timgm6mb-soundfont)")
	}
	keys := []uint8{60, 64, 67, 72}
	clip := play(t, load(t, raw), song(73, 100, keys...), synth.Options{Rate: 22050}) // a flute
	for i, key := range keys {
		at := float64(i) / 2
		if got := pitch(clip.Trim(at+0.15, at+0.45)); got != int(key) {
			t.Errorf("note %d sounds as key %d, want %d", i, got, key)
		}
	}
	if info := clip.Trim(0, 2).Info(); info.IsSilent || info.PeakDB > 0 || info.MeanDB < -45 {
		t.Errorf("levels %+v", info)
	}
}

func TestProgressAndCancel(t *testing.T) {
	t.Parallel()
	font := load(t, soundfonttest.Font())
	var parts []float64
	for _, normalize := range []bool{false, true} {
		parts = nil
		play(t, font, song(0, 100, 60), synth.Options{Normalize: normalize, Progress: func(p float64) { parts = append(parts, p) }})
		if n := len(parts); n < 10 || parts[n-1] != 1 || !slices.IsSorted(parts) {
			t.Errorf("progress %v", parts)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := font.Play(ctx, io.Discard, song(0, 100, 60), synth.Options{Progress: func(float64) { cancel() }})
	if err == nil {
		t.Error("rendering continued after it was cancelled")
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	font := load(t, soundfonttest.Font())
	if _, err := font.Play(t.Context(), io.Discard, song(0, 1, 60), synth.Options{Rate: 7}); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("a rate of 7: %v", err)
	}
	long := &smf.File{Tracks: []smf.Track{{Events: []smf.Event{smf.End(480 * 2 * 3600 * 2)}}}}
	if _, err := font.Play(t.Context(), io.Discard, long, synth.Options{}); fault.CodeOf(err) != fault.Limit {
		t.Errorf("two hours: %v", err)
	}
}

// TestHostileFonts checks that a font with invalid tables gives an error, not a panic.
func TestHostileFonts(t *testing.T) {
	t.Parallel()
	good := soundfonttest.Font()
	tables := bytes.Index(good, []byte("pdta"))
	music := song(0, 100, 36, 60, 69)
	for i := tables; i < len(good); i++ {
		bad := bytes.Clone(good)
		bad[i] ^= 0xff
		font, err := synth.Load(bytes.NewReader(bad), int64(len(bad)))
		if err != nil {
			continue
		}
		if i%7 == 0 { // playing each would take long
			_, _ = font.Play(t.Context(), io.Discard, music, synth.Options{Rate: 8000})
		}
	}
}

func BenchmarkPlay(b *testing.B) {
	raw, err := os.ReadFile("/usr/share/sounds/sf2/TimGM6mb.sf2")
	if err != nil {
		b.Skip("no soundfont is installed (make system, or Debian's package timgm6mb-soundfont)")
	}
	font, music := load(b, raw), song(0, 100, 60, 64, 67, 72, 60, 64, 67, 72, 60, 64, 67, 72)
	var seconds float64
	for b.Loop() {
		r, err := font.Play(b.Context(), io.Discard, music, synth.Options{})
		if err != nil {
			b.Fatal(err)
		}
		seconds += r.Seconds
	}
	b.ReportMetric(seconds/b.Elapsed().Seconds(), "x-realtime")
}
