package audio_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/music/audio"
)

// tone is a sine.
func tone(hz, seconds, level float64, rate, channels int) audio.Clip {
	c := audio.Clip{Channels: channels, Rate: rate}
	for i := range int(seconds * float64(rate)) {
		s := float32(level * math.Sin(2*math.Pi*hz*float64(i)/float64(rate)))
		for range channels {
			c.Samples = append(c.Samples, s)
		}
	}
	return c
}

// strength is the amplitude of a frequency in the first channel.
func strength(c audio.Clip, hz float64) float64 {
	var re, im float64
	n := c.Frames()
	for i := range n {
		turn := 2 * math.Pi * hz * float64(i) / float64(c.Rate)
		s := float64(c.Samples[i*c.Channels])
		re, im = re+s*math.Cos(turn), im+s*math.Sin(turn)
	}
	return 2 * math.Hypot(re, im) / float64(n)
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within || math.IsNaN(got) {
		t.Errorf("%s = %g, want %g", what, got, want)
	}
}

func TestWAVRoundTrip(t *testing.T) {
	t.Parallel()
	for bits, step := range map[int]float64{16: 1.0 / (1 << 15), 24: 1.0 / (1 << 23), 32: 0} {
		for channels := 1; channels <= 3; channels++ {
			was := tone(440, 0.1, 0.9, 8000, channels)
			raw, err := was.Encode(bits)
			if err != nil {
				t.Fatal(err)
			}
			got, format, err := audio.Decode(raw)
			if err != nil || got.Channels != channels || got.Rate != 8000 || len(got.Samples) != len(was.Samples) || format.Bits != bits || format.Float != (bits == 32) {
				t.Fatalf("%d bits, %d channels: %v, %d at %d Hz, %d samples", bits, channels, err, got.Channels, got.Rate, len(got.Samples))
			}
			for i, s := range got.Samples {
				if math.Abs(float64(s-was.Samples[i])) > step {
					t.Fatalf("%d bits: sample %d is %g, was %g", bits, i, s, was.Samples[i])
				}
			}
			again, err := got.Encode(bits)
			if err != nil || !bytes.Equal(again, raw) {
				t.Errorf("%d bits: written again it differs (%v)", bits, err)
			}
		}
	}
}

// file builds a WAV file.
func file(tag, channels uint16, rate uint32, bits uint16, data []byte, before ...byte) []byte {
	le := binary.LittleEndian
	out := append([]byte("RIFF\x00\x00\x00\x00WAVE"), before...)
	out = le.AppendUint32(append(out, "fmt "...), 16)
	out = le.AppendUint16(le.AppendUint16(out, tag), channels)
	out = le.AppendUint32(le.AppendUint32(out, rate), 0)
	out = le.AppendUint16(le.AppendUint16(out, 0), bits)
	out = le.AppendUint32(append(out, "data"...), uint32(len(data)))
	return append(out, data...)
}

func TestWAVOfOthers(t *testing.T) {
	t.Parallel()
	double := binary.LittleEndian.AppendUint64(nil, math.Float64bits(-0.5))
	nan := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.NaN())))
	tests := map[string]struct {
		raw  []byte
		want []float32
	}{
		"8 bits":               {file(1, 1, 8000, 8, []byte{0, 128, 192}), []float32{-1, 0, 0.5}},
		"32 bits":              {file(1, 1, 8000, 32, []byte{0, 0, 0, 0x40}), []float32{0.5}},
		"64 bits float":        {file(3, 1, 8000, 64, double), []float32{-0.5}},
		"not a number":         {file(3, 1, 8000, 32, nan), []float32{0}},
		"another chunk first":  {file(1, 1, 8000, 16, []byte{0, 0x40}, 'L', 'I', 'S', 'T', 3, 0, 0, 0, 1, 2, 3, 0), []float32{0.5}},
		"broken off":           {file(1, 2, 8000, 16, []byte{0, 0x40, 0, 0x40, 9, 9, 9, 9})[:50], []float32{0.5, 0.5}},
		"half a frame is left": {file(1, 2, 8000, 16, []byte{0, 0x40, 0, 0x40, 0, 0x40}), []float32{0.5, 0.5}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, err := audio.Decode(tt.raw)
			if err != nil || !slices.Equal(got.Samples, tt.want) {
				t.Errorf("got %v, %v; want %v", got.Samples, err, tt.want)
			}
		})
	}
}

func TestBadWAV(t *testing.T) {
	t.Parallel()
	for name, raw := range map[string][]byte{
		"nothing":          nil,
		"a text":           []byte("RIFF is not enough"),
		"no samples":       file(1, 1, 8000, 16, nil)[:36],
		"samples first":    []byte("RIFF\x00\x00\x00\x00WAVEdata\x02\x00\x00\x00\x00\x00"),
		"no channels":      file(1, 0, 8000, 16, []byte{0, 0}),
		"too many":         file(1, 33, 8000, 16, []byte{0, 0}),
		"an odd rate":      file(1, 1, 7, 16, []byte{0, 0}),
		"a huge rate":      file(1, 1, math.MaxUint32, 16, []byte{0, 0}),
		"a codec":          file(2, 1, 8000, 4, []byte{0, 0}),
		"12 bits":          file(1, 1, 8000, 12, []byte{0, 0}),
		"a format cut off": []byte("RIFF\x00\x00\x00\x00WAVEfmt \x04\x00\x00\x00\x01\x00\x01\x00"),
	} {
		if _, _, err := audio.Decode(raw); fault.CodeOf(err) != fault.InvalidParams {
			t.Errorf("%s: %v, want invalid_params", name, err)
		}
	}
	c := tone(1, 1, 1, 8000, 1)
	if _, err := c.Encode(8); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("8 bits: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(file(1, 2, 8000, 16, []byte{0, 0x40, 0, 0x40}))
	f.Add(file(0xfffe, 1, 8000, 24, []byte{1, 2, 3}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		c, _, err := audio.Decode(raw)
		if err != nil {
			return
		}
		if err := c.Check(); err != nil {
			t.Error(err)
		}
		if peak := c.Peak(); math.IsNaN(peak) || math.IsInf(peak, 0) {
			t.Errorf("peak %g", peak)
		}
	})
}

func TestLevels(t *testing.T) {
	t.Parallel()
	c := tone(1000, 1, 0.5, 8000, 2)
	near(t, "peak", c.Peak(), 0.5, 1e-6)
	near(t, "rms", c.RMS(), 0.5/math.Sqrt2, 1e-6)
	info := c.Info()
	near(t, "peak_db", info.PeakDB, -6.02, 0.01)
	near(t, "mean_db", info.MeanDB, -9.03, 0.01)
	if info.IsSilent || info.Duration != 1 || info.Frames != 8000 || info.Channels != 2 {
		t.Errorf("info %+v", info)
	}
	silence, err := audio.Silence(0.5, 8000, 1)
	if info := silence.Info(); err != nil || !info.IsSilent || info.PeakDB != audio.MinLevel || info.MeanDB != audio.MinLevel || info.Duration != 0.5 {
		t.Errorf("silence: %+v, %v", info, err)
	}
	if info := tone(100, 0.1, 0.0005, 8000, 1).Info(); !info.IsSilent {
		t.Errorf("-66 dB is not silent: %+v", info)
	}
	near(t, "gain", c.Gain(-6).Peak(), 0.5*math.Pow(10, -0.3), 1e-6)
	near(t, "normalize", c.Normalize(-1).Peak(), math.Pow(10, -0.05), 1e-6)
	if got := silence.Normalize(0); got.Peak() != 0 {
		t.Error("normalized silence sounds")
	}
}

func TestResampleKeepsPitchAndLevel(t *testing.T) {
	t.Parallel()
	for _, rates := range [][2]int{{44100, 48000}, {44100, 22050}, {8000, 44100}} {
		for quality, within := range map[audio.Quality]float64{audio.Quick: 0.06, audio.Medium: 0.01, audio.High: 0.002} {
			got, err := tone(1000, 0.5, 0.5, rates[0], 2).Resample(rates[1], quality)
			if err != nil {
				t.Fatal(err)
			}
			near(t, "duration", got.Seconds(), 0.5, 1e-4)
			middle := got.Trim(0.1, 0.4)
			near(t, string(quality)+" 1000 Hz", strength(middle, 1000), 0.5, within)
			near(t, string(quality)+" 1700 Hz", strength(middle, 1700), 0, within)
		}
	}
}

// TestResampleDownDoesNotAlias checks that frequencies above the limit of the lower rate
// do not alias to another tone.
func TestResampleDownDoesNotAlias(t *testing.T) {
	t.Parallel()
	got, err := tone(9000, 0.5, 0.5, 44100, 1).Resample(11025, audio.High)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "9000 Hz at 11025 Hz", got.Trim(0.1, 0.4).Peak(), 0, 0.001)
}

func TestEdits(t *testing.T) {
	t.Parallel()
	clip := func(channels int, samples ...float32) audio.Clip {
		return audio.Clip{Samples: samples, Channels: channels, Rate: 1000}
	}
	stereo := clip(2, 1, 2, 3, 4, 5, 6)
	ok := func(c audio.Clip, err error) audio.Clip {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		return c
	}
	tests := map[string]struct{ got, want audio.Clip }{
		"mono":           {stereo.Mono(), clip(1, 1.5, 3.5, 5.5)},
		"mono of mono":   {clip(1, 7).Mono(), clip(1, 7)},
		"stereo":         {clip(1, 1, 2).Stereo(), clip(2, 1, 1, 2, 2)},
		"stereo of more": {clip(3, 1, 2, 3).Stereo(), clip(2, 1, 2)},
		"trim":           {stereo.Trim(0.001, 0.002), clip(2, 3, 4)},
		"trim beyond":    {stereo.Trim(-1, 99), stereo},
		"trim backwards": {stereo.Trim(0.002, 0.001), clip(2)},
		"pad":            {ok(clip(2, 1, 2).Pad(0.001, 0.002)), clip(2, 0, 0, 1, 2, 0, 0, 0, 0)},
		"fade":           {ok(clip(1, 1, 1, 1, 1).Fade(0.002, 0.002, audio.Linear)), clip(1, 0, 0.5, 0.5, 0)},
		"reverse":        {stereo.Reverse(), clip(2, 5, 6, 3, 4, 1, 2)},
		"concat":         {ok(audio.Concat([]audio.Clip{clip(1, 1), clip(1, 2, 3)})), clip(1, 1, 2, 3)},
		"mix":            {ok(audio.Mix([]audio.Clip{clip(1, 1), clip(1, 2, 3)}, nil)), clip(1, 3, 3)},
		"mix with gains": {ok(audio.Mix([]audio.Clip{clip(1, 1), clip(1, 2, 3)}, []float64{20, 0})), clip(1, 12, 3)},
	}
	for name, tt := range tests {
		if !slices.Equal(tt.got.Samples, tt.want.Samples) || tt.got.Channels != tt.want.Channels || tt.got.Rate != tt.want.Rate {
			t.Errorf("%s: %+v, want %+v", name, tt.got, tt.want)
		}
	}
	quarter := ok(clip(1, slices.Repeat([]float32{1}, 100)...).Fade(0.1, 0, audio.Quarter))
	near(t, "quarter of a sine", float64(quarter.Samples[50]), math.Sin(math.Pi/4), 1e-6)
	for name, err := range map[string]error{
		"no clips":       second(audio.Mix(nil, nil)),
		"unlike clips":   second(audio.Concat([]audio.Clip{clip(1, 1), clip(2, 1, 1)})),
		"no such curve":  second(stereo.Fade(1, 1, "cubic")),
		"no such rate":   second(stereo.Resample(5, audio.Quick)),
		"no such care":   second(stereo.Resample(8000, "best")),
		"endless":        second(audio.Silence(1e9, 8000, 1)),
		"not a time":     second(audio.Silence(math.NaN(), 8000, 1)),
		"half a frame":   clip(2, 1).Check(),
		"negative noise": second(stereo.Pad(-1, 0)),
	} {
		if fault.CodeOf(err) != fault.InvalidParams {
			t.Errorf("%s: %v, want invalid_params", name, err)
		}
	}
}

func second(_ audio.Clip, err error) error { return err }
