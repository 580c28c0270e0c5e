package synth_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/music/audio"
	"github.com/luanette/luanette/internal/music/smf"
	"github.com/luanette/luanette/internal/music/soundfont"
	"github.com/luanette/luanette/internal/music/soundfont/soundfonttest"
	"github.com/luanette/luanette/internal/music/synth"
)

// wave is a sine of 441 Hz that fills a second, with an amplitude in steps of 24 bits.
func wave(amplitude float64) []int32 {
	out := make([]int32, 44100)
	for i := range out {
		out[i] = int32(math.Round(amplitude * math.Sin(2*math.Pi*float64(i)/100)))
	}
	return out
}

const half = 1 << 22 // half of full scale

func gens(pairs ...int) (list []soundfont.Generator) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, soundfont.Generator{Number: pairs[i], Amount: int16(pairs[i+1])})
	}
	return list
}

// looped is a font whose sine sounds as long as the key is held.
func looped(zone soundfonttest.Zone, preset ...soundfonttest.Zone) soundfonttest.Spec {
	zone.Generators = append(gens(54, 1), zone.Generators...)
	return soundfonttest.Spec{Points: wave(half), Loop: 1000, End: 44000, Instrument: []soundfonttest.Zone{zone}, Preset: preset}
}

// tone renders key 60 for a second after some events, and returns half a second of it.
func tone(t *testing.T, spec soundfonttest.Spec, velocity uint8, before ...smf.Event) audio.Clip {
	t.Helper()
	p := &tune{events: before}
	p.note(0, 2*beat, 0, 60, velocity)
	return play(t, load(t, spec.File()), p.file(0), synth.Options{}).Trim(0.3, 0.8)
}

func level(c audio.Clip) float64 { return audio.Decibels(c.RMS()) }

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s is %g, want %g", what, got, want)
	}
}

// TestDeepSamples plays a sound that only the lower 8 bits of a sample have.
func TestDeepSamples(t *testing.T) {
	t.Parallel()
	spec := looped(soundfonttest.Zone{})
	spec.Points = wave(100)
	for i := range spec.Points {
		spec.Points[i] += 128 // so that the upper 16 bits are 0
	}
	spec.Deep = true
	p := &tune{}
	p.note(0, 2*beat, 0, 60, 127)
	p.add(smf.Control(0, 0, 7, 127))
	deep := play(t, load(t, spec.File()), p.file(0), synth.Options{Gain: 60}).Trim(0.3, 0.8)
	if s := strength(deep.Mono(), 441); s < 1e-4 {
		t.Errorf("a sine of the lower 8 bits has a strength of %g", s)
	}
	spec.Deep = false
	if flat := play(t, load(t, spec.File()), p.file(0), synth.Options{Gain: 60}); flat.Peak() > 0 {
		t.Errorf("without the lower bits there is a sound of %g", flat.Peak())
	}
}

// TestModulators checks what modulators of instruments and presets add.
func TestModulators(t *testing.T) {
	t.Parallel()
	const cc16, attenuation, pan, fineTune = 0x80 | 16, 48, 17, 52
	mod := func(source, target uint16, amount int16, more ...uint16) soundfont.Modulator {
		m := soundfont.Modulator{Source: source, Target: target, Amount: amount}
		if len(more) > 0 {
			m.Scale = more[0]
		}
		return m
	}
	plain := level(tone(t, looped(soundfonttest.Zone{}), 100))
	tests := map[string]struct {
		instrument []soundfont.Modulator
		preset     []soundfont.Modulator
		velocity   uint8
		control    uint8
		want       float64 // decibels against none
	}{
		"a controller at 0":           {instrument: []soundfont.Modulator{mod(cc16, attenuation, 200)}, want: 0},
		"a controller at 127":         {instrument: []soundfont.Modulator{mod(cc16, attenuation, 200)}, control: 127, want: -20},
		"half way":                    {instrument: []soundfont.Modulator{mod(cc16, attenuation, 200)}, control: 64, want: -20 * 64.0 / 127},
		"descending":                  {instrument: []soundfont.Modulator{mod(cc16|1<<8, attenuation, 200)}, want: -20},
		"bipolar":                     {instrument: []soundfont.Modulator{mod(cc16|1<<9, attenuation, 200)}, control: 127, want: -20},
		"a switch below":              {instrument: []soundfont.Modulator{mod(cc16|3<<10, attenuation, 200)}, control: 60, want: 0},
		"a switch above":              {instrument: []soundfont.Modulator{mod(cc16|3<<10, attenuation, 200)}, control: 70, want: -20},
		"convex":                      {instrument: []soundfont.Modulator{mod(cc16|2<<10, attenuation, 200)}, control: 64, want: -20 * (1 + 40.0/96*math.Log10(64.0/127))},
		"scaled by another at 0":      {instrument: []soundfont.Modulator{mod(cc16, attenuation, 200, 0x80|17)}, control: 127, want: 0},
		"a preset adds":               {instrument: []soundfont.Modulator{mod(cc16, attenuation, 200)}, preset: []soundfont.Modulator{mod(cc16, attenuation, 100)}, control: 127, want: -30},
		"a preset alone":              {preset: []soundfont.Modulator{mod(cc16, attenuation, 100)}, control: 127, want: -10},
		"the default is replaced":     {instrument: []soundfont.Modulator{mod(2|1<<8|1<<10, attenuation, 0)}, velocity: 20, want: 40 * math.Log10(127.0/100)},
		"a link is ignored":           {instrument: []soundfont.Modulator{mod(127, attenuation, 500)}, control: 127, want: 0},
		"a bank select is no source":  {instrument: []soundfont.Modulator{mod(0x80, attenuation, 500)}, control: 127, want: 0},
		"the key":                     {instrument: []soundfont.Modulator{mod(3, attenuation, 127)}, want: -6},
		"an unknown curve is ignored": {instrument: []soundfont.Modulator{mod(cc16|9<<10, attenuation, 500)}, control: 127, want: 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := looped(soundfonttest.Zone{Modulators: tt.instrument}, soundfonttest.Zone{Modulators: tt.preset})
			if tt.velocity == 0 {
				tt.velocity = 100
			}
			near(t, "the level", level(tone(t, spec, tt.velocity, smf.Control(0, 0, 16, tt.control)))-plain, tt.want, 0.1)
		})
	}
	left := tone(t, looped(soundfonttest.Zone{Modulators: []soundfont.Modulator{mod(cc16, pan, -500)}}), 100, smf.Control(0, 0, 16, 127))
	if right := channel(left, 1).Peak(); right > 1e-4 {
		t.Errorf("panned to the left, the right has %g", right)
	}
	sharp := tone(t, looped(soundfonttest.Zone{Modulators: []soundfont.Modulator{mod(cc16, fineTune, 1200)}}), 100, smf.Control(0, 0, 16, 127))
	if octave, was := strength(sharp.Mono(), 882), strength(sharp.Mono(), 441); octave < 100*was {
		t.Errorf("an octave higher: %g at 882 Hz, %g at 441", octave, was)
	}
}

// TestZones checks that global zones are defaults, that presets add, and what they
// cannot change.
func TestZones(t *testing.T) {
	t.Parallel()
	plain := level(tone(t, looped(soundfonttest.Zone{}), 100))
	spec := looped(soundfonttest.Zone{})
	spec.Instrument = append([]soundfonttest.Zone{{Generators: gens(48, 250, 54, 1)}}, soundfonttest.Zone{})
	near(t, "a global zone", level(tone(t, spec, 100))-plain, -10, 0.1) // 0.4 of what it says
	spec.Instrument[1].Generators = gens(48, 125)
	near(t, "a local zone", level(tone(t, spec, 100))-plain, -5, 0.1)
	spec.Preset = []soundfonttest.Zone{{Generators: gens(48, 125)}, {Generators: gens(54, 0, 58, 72)}}
	near(t, "a preset", level(tone(t, spec, 100))-plain, -10, 0.1)
}

// TestLoops checks samples that end, loop, and loop until the key is released.
func TestLoops(t *testing.T) {
	t.Parallel()
	length := func(mode int, spec soundfonttest.Spec) (float64, audio.Clip) {
		spec.Instrument = []soundfonttest.Zone{{Generators: gens(54, mode, 38, 1200)}} // released for 2 s
		p := &tune{}
		p.note(0, 3*beat, 0, 60, 100)
		clip := play(t, load(t, spec.File()), p.file(0), synth.Options{Rate: 22050})
		last := 0
		for i, s := range clip.Samples {
			if math.Abs(float64(s)) > 2e-4 {
				last = i / 2
			}
		}
		return float64(last) / 22050, clip
	}
	spec := soundfonttest.Spec{Points: wave(half), Loop: 1000, End: 40000}
	once, _ := length(0, spec)
	near(t, "the end of a sample without a loop", once, 1, 0.01)
	forever, _ := length(1, spec)
	if forever < 1.9 || forever > 3.6 {
		t.Errorf("a loop ends after %g s", forever)
	}
	held, _ := length(3, spec)
	if held < 1.6 || held > 2.6 { // in the loop at 1.5 s, then the rest of the sample
		t.Errorf("a loop while the key is held ends after %g s", held)
	}
	spec.Loop, spec.End = 5, 1<<31 // beyond the sample: taken to its end
	if wild, _ := length(1, spec); wild < 1.9 {
		t.Errorf("a loop beyond the sample ends after %g s", wild)
	}
	spec.Loop, spec.End = 1<<31, 5
	backwards, _ := length(1, spec)
	near(t, "the end of a loop that is none", backwards, 1, 0.01)
}

// TestTails checks that the file lasts as long as the last note fades, and ends in
// silence, also for notes that nobody ends.
func TestTails(t *testing.T) {
	t.Parallel()
	for release, want := range map[int][2]float64{-12000: {0, 0.2}, 0: {0.6, 1}, 2400: {2.4, 4}, 6000: {synth.MaxTail, synth.MaxTail}} {
		spec := looped(soundfonttest.Zone{Generators: gens(38, release)})
		p := &tune{}
		p.add(smf.Control(0, 0, 64, 127)) // a pedal that stays down
		p.add(smf.Note(0, 0, 60, 127))    // a key that stays down
		p.add(smf.End(beat))
		clip := play(t, load(t, spec.File()), p.file(0), synth.Options{Rate: 8000})
		tail := clip.Seconds() - 0.5
		if tail < want[0]-0.01 || tail > want[1]+0.01 {
			t.Errorf("release of %d: a tail of %g s, want %v", release, tail, want)
		}
		if end := clip.Trim(clip.Seconds()-0.0003, clip.Seconds()).Peak(); end > 0.01 {
			t.Errorf("release of %d: the last frames have a level of %g", release, end)
		}
	}
}

// TestReverbTail checks that the reverb of the last note is heard.
func TestReverbTail(t *testing.T) {
	t.Parallel()
	p := &tune{}
	p.add(smf.Control(0, 0, 91, 127))
	p.note(0, beat, 0, 60, 127)
	clip := play(t, load(t, looped(soundfonttest.Zone{Generators: gens(16, 500)}).File()), p.file(0), synth.Options{Rate: 22050})
	if s := clip.Seconds(); s < 1.5 || s > 2.5 {
		t.Errorf("%g seconds", s)
	}
	early, late := level(clip.Trim(0.6, 0.7)), level(clip.Trim(1.1, 1.2))
	near(t, "the fall in half a second", early-late, 30, 6)
	if sides(clip.Trim(0.6, 0.9)).RMS() < 0.1*clip.Trim(0.6, 0.9).RMS() {
		t.Error("the reverb is mono")
	}
}

// TestGain checks both ways to set the level.
func TestGain(t *testing.T) {
	t.Parallel()
	font, music := load(t, soundfonttest.Font()), song(0, 60, 60, 64)
	peak := func(o synth.Options) (float64, synth.Result) {
		o.Rate = 22050
		clip, result := played(t, font, music, o)
		near(t, "the peak in the result", audio.Decibels(result.Peak), audio.Decibels(clip.Peak()), 0.05)
		return audio.Decibels(clip.Peak()), result
	}
	plain, first := peak(synth.Options{})
	louder, _ := peak(synth.Options{Gain: 6})
	near(t, "6 dB more", louder-plain, 6, 0.05)
	normal, second := peak(synth.Options{Normalize: true})
	near(t, "normalized", normal, -1, 0.01)
	softer, _ := peak(synth.Options{Normalize: true, Gain: -9})
	near(t, "normalized and 9 dB less", softer, -10, 0.01)
	near(t, "the gain of the result", second.Gain, normal-plain, 0.1)
	if first.Frames != second.Frames {
		t.Errorf("%d frames, normalized %d", first.Frames, second.Frames)
	}
	clipped, result := played(t, font, music, synth.Options{Rate: 22050, Normalize: true, Gain: 12})
	if result.Peak < 3 || clipped.Peak() > 1 {
		t.Errorf("12 dB too loud: peak %g, in the result %g", clipped.Peak(), result.Peak)
	}
	silent := &smf.File{Tracks: []smf.Track{{Events: []smf.Event{smf.End(beat)}}}}
	if clip, _ := played(t, font, silent, synth.Options{Normalize: true}); clip.Peak() != 0 || clip.Seconds() < 0.5 {
		t.Errorf("silence: %+v", clip.Info())
	}
	for _, gain := range []float64{61, -61, math.NaN(), math.Inf(1)} {
		if _, err := font.Play(t.Context(), io.Discard, music, synth.Options{Gain: gain}); fault.CodeOf(err) != fault.InvalidParams {
			t.Errorf("a gain of %g: %v", gain, err)
		}
	}
}

// TestStreams checks that the sound is written in small parts, as it is made.
func TestStreams(t *testing.T) {
	t.Parallel()
	w := &parts{}
	if _, err := load(t, soundfonttest.Font()).Play(t.Context(), w, song(0, 100, 60, 62, 64, 65), synth.Options{}); err != nil {
		t.Fatal(err)
	}
	if w.count < 100 || w.longest > 4096 {
		t.Errorf("%d parts, the longest of %d bytes", w.count, w.longest)
	}
}

type parts struct{ count, longest int }

func (p *parts) Write(b []byte) (int, error) {
	p.count, p.longest = p.count+1, max(p.longest, len(b))
	return len(b), nil
}

// TestMalformedFonts checks that each is refused with a reason.
func TestMalformedFonts(t *testing.T) {
	t.Parallel()
	spec := looped(soundfonttest.Zone{})
	tests := map[string]struct {
		change func(*soundfonttest.Spec)
		code   fault.Code
	}{
		"a sample beyond the file": {func(s *soundfonttest.Spec) { s.To = 1 << 30 }, fault.InvalidParams},
		"a compressed sample":      {func(s *soundfonttest.Spec) { s.Type = 0x11 }, fault.InvalidParams},
		"a sample in a sound card": {func(s *soundfonttest.Spec) { s.Type = 0x8001 }, fault.InvalidParams},
		"too many modulators": {func(s *soundfonttest.Spec) {
			s.Instrument = []soundfonttest.Zone{{Modulators: make([]soundfont.Modulator, 300)}}
		}, fault.Limit},
	}
	for name, tt := range tests {
		bad := spec
		tt.change(&bad)
		raw := bad.File()
		font, err := synth.Load(bytes.NewReader(raw), int64(len(raw)))
		if err == nil {
			_, err = font.Play(t.Context(), io.Discard, song(0, 100, 60), synth.Options{})
		}
		if fault.CodeOf(err) != tt.code || fault.HintOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	raw := spec.File()
	bags := bytes.Index(raw, []byte("ibag")) + 8
	binary.LittleEndian.PutUint16(raw[bags:], 60000)
	if _, err := synth.Load(bytes.NewReader(raw), int64(len(raw))); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("zones that overlap: %v", err)
	}
}

// FuzzPlay plays with fonts whose tables are anything.
func FuzzPlay(f *testing.F) {
	spec := looped(soundfonttest.Zone{Generators: gens(8, 5000, 9, 300, 34, -3000, 11, 2000), Modulators: []soundfont.Modulator{{Source: 0x502, Target: 8, Amount: -2400}}})
	spec.Points = spec.Points[:2000]
	good := spec.File()
	tables := bytes.Index(good, []byte("pdta"))
	f.Add([]byte{0, 60, 1, 0, 90, 255}, uint8(0), uint8(100))
	f.Add([]byte{}, uint8(9), uint8(36))
	f.Fuzz(func(t *testing.T, changes []byte, channel, key uint8) {
		raw := bytes.Clone(good)
		for ; len(changes) >= 3; changes = changes[3:] { // each is a place in the tables, and a value
			raw[tables+int(binary.BigEndian.Uint16(changes))%(len(raw)-tables)] ^= changes[2]
		}
		font, err := synth.Load(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			return
		}
		p := &tune{}
		p.add(smf.Control(0, channel&15, key&127, 100), smf.Bend(10, channel&15, int(key)*30))
		p.note(0, 20, channel&15, key&127, 1+key&63)
		p.note(20, 20, channel&15, 60, 127)
		result, err := font.Play(t.Context(), io.Discard, p.file(0), synth.Options{Rate: 8000})
		if err == nil && (math.IsNaN(result.Peak) || math.IsInf(result.Peak, 0) || result.Seconds > synth.MaxTail+1) {
			t.Errorf("result %+v", result)
		}
	})
}
