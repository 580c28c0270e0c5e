// Package audio reads, writes, measures and edits audio samples: WAV files, trimming,
// mixing, fading and resampling. Clips are in memory; the package plays no sound.
package audio

import (
	"math"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// Clip is a piece of audio. Samples are interleaved: a frame has one sample per
// channel. Full scale is from -1 to 1.
type Clip struct {
	Samples  []float32
	Channels int
	Rate     int // frames per second
}

// Limits of a Clip, so that a file's header alone cannot claim much memory.
const (
	MaxChannels = 32
	MinRate     = 1000
	MaxRate     = 384_000
)

// Check validates a clip.
func (c Clip) Check() error {
	switch {
	case c.Channels < 1 || c.Channels > MaxChannels:
		return fault.New(fault.InvalidParams, "audio must have 1 to %d channels, not %d", MaxChannels, c.Channels)
	case c.Rate < MinRate || c.Rate > MaxRate:
		return fault.New(fault.InvalidParams, "audio must have a sample rate of %d to %d, not %d", MinRate, MaxRate, c.Rate)
	case len(c.Samples)%c.Channels != 0:
		return fault.New(fault.InvalidParams, "%d samples cannot be divided among %d channels", len(c.Samples), c.Channels)
	}
	return nil
}

// Frames is the number of frames.
func (c Clip) Frames() int { return len(c.Samples) / c.Channels }

// Duration is the length of the clip.
func (c Clip) Duration() time.Duration {
	return time.Duration(float64(c.Frames()) / float64(c.Rate) * float64(time.Second))
}

// Seconds is the length of the clip in seconds.
func (c Clip) Seconds() float64 { return float64(c.Frames()) / float64(c.Rate) }

// with returns a clip with the same channels and rate.
func (c Clip) with(samples []float32) Clip {
	return Clip{Samples: samples, Channels: c.Channels, Rate: c.Rate}
}

// frameAt is the frame at a time in seconds, clamped to the clip.
func (c Clip) frameAt(seconds float64) int {
	frame := math.Round(seconds * float64(c.Rate))
	return int(math.Max(0, math.Min(frame, float64(c.Frames()))))
}

// Silence returns a silent clip of at most an hour.
func Silence(seconds float64, rate, channels int) (Clip, error) {
	c := Clip{Channels: channels, Rate: rate}
	if err := c.Check(); err != nil {
		return Clip{}, err
	}
	if !(seconds >= 0 && seconds <= 3600) {
		return Clip{}, fault.New(fault.InvalidParams, "invalid length of %g seconds", seconds).WithHint("use 0 to 3600")
	}
	c.Samples = make([]float32, int(math.Round(seconds*float64(rate)))*channels)
	return c, nil
}

// Mono is the mean of all channels.
func (c Clip) Mono() Clip {
	if c.Channels == 1 {
		return c.with(slices.Clone(c.Samples))
	}
	mono := make([]float32, c.Frames())
	for i := range mono {
		var sum float32
		for _, s := range c.Samples[i*c.Channels : (i+1)*c.Channels] {
			sum += s
		}
		mono[i] = sum / float32(c.Channels)
	}
	return Clip{Samples: mono, Channels: 1, Rate: c.Rate}
}

// Stereo returns two channels: a mono channel twice, or the first two of more.
func (c Clip) Stereo() Clip {
	stereo := make([]float32, 0, 2*c.Frames())
	for i := 0; i < len(c.Samples); i += c.Channels {
		stereo = append(stereo, c.Samples[i], c.Samples[i+min(1, c.Channels-1)])
	}
	return Clip{Samples: stereo, Channels: 2, Rate: c.Rate}
}

// Trim returns the part from start to end, in seconds.
func (c Clip) Trim(start, end float64) Clip {
	from, to := c.frameAt(start), c.frameAt(end)
	if from >= to {
		return c.with(nil)
	}
	return c.with(slices.Clone(c.Samples[from*c.Channels : to*c.Channels]))
}

// Pad adds silence before and after, in seconds.
func (c Clip) Pad(before, after float64) (Clip, error) {
	front, err := Silence(before, c.Rate, c.Channels)
	if err != nil {
		return Clip{}, err
	}
	back, err := Silence(after, c.Rate, c.Channels)
	if err != nil {
		return Clip{}, err
	}
	return c.with(slices.Concat(front.Samples, c.Samples, back.Samples)), nil
}

// Curve is the shape of a fade.
type Curve string

// The curves.
const (
	Linear  Curve = "linear"
	Log     Curve = "log"     // linear in decibels, over 60 dB
	Quarter Curve = "quarter" // a quarter of a sine: constant power in a crossfade
)

// at is the factor at a position of a fade-in, from 0 to 1.
func (c Curve) at(place float64) float64 {
	switch c {
	case Log:
		if place <= 0 {
			return 0
		}
		return math.Pow(10, 3*(place-1))
	case Quarter:
		return math.Sin(place * math.Pi / 2)
	default:
		return place
	}
}

// Fade fades the clip in and out, for the given seconds each.
func (c Clip) Fade(in, out float64, curve Curve) (Clip, error) {
	if curve != Linear && curve != Log && curve != Quarter {
		return Clip{}, fault.New(fault.InvalidParams, "unknown fade curve %q", string(curve)).WithHint("use linear, log or quarter")
	}
	faded := slices.Clone(c.Samples)
	up, down, last := c.frameAt(in), c.frameAt(out), c.Frames()
	scale := func(frame int, factor float64) {
		for i := frame * c.Channels; i < (frame+1)*c.Channels; i++ {
			faded[i] *= float32(factor)
		}
	}
	for i := range up {
		scale(i, curve.at(float64(i)/float64(up)))
	}
	for i := range down {
		scale(last-1-i, curve.at(float64(i)/float64(down)))
	}
	return c.with(faded), nil
}

// Gain changes the level by a number of decibels.
func (c Clip) Gain(db float64) Clip {
	factor, louder := float32(FromDecibels(db)), make([]float32, len(c.Samples))
	for i, s := range c.Samples {
		louder[i] = s * factor
	}
	return c.with(louder)
}

// Normalize scales the clip so that its peak is at a level in decibels. Silence
// stays silent.
func (c Clip) Normalize(db float64) Clip {
	peak := c.Peak()
	if peak == 0 {
		return c.with(slices.Clone(c.Samples))
	}
	return c.Gain(db - 20*math.Log10(peak))
}

// Reverse reverses the clip in time.
func (c Clip) Reverse() Clip {
	back := make([]float32, 0, len(c.Samples))
	for i := len(c.Samples) - c.Channels; i >= 0; i -= c.Channels {
		back = append(back, c.Samples[i:i+c.Channels]...)
	}
	return c.with(back)
}

// Concat joins clips one after another.
func Concat(clips []Clip) (Clip, error) {
	if err := alike(clips); err != nil {
		return Clip{}, err
	}
	var all []float32
	for _, c := range clips {
		all = append(all, c.Samples...)
	}
	return clips[0].with(all), nil
}

// Mix adds clips, each with its gain in decibels; missing gains are 0. The result
// is as long as the longest clip.
func Mix(clips []Clip, gains []float64) (Clip, error) {
	if err := alike(clips); err != nil {
		return Clip{}, err
	}
	var length int
	for _, c := range clips {
		length = max(length, len(c.Samples))
	}
	sum := make([]float32, length)
	for n, c := range clips {
		factor := float32(1)
		if n < len(gains) {
			factor = float32(FromDecibels(gains[n]))
		}
		for i, s := range c.Samples {
			sum[i] += s * factor
		}
	}
	return clips[0].with(sum), nil
}

// alike checks that clips have the same channels and rate.
func alike(clips []Clip) error {
	if len(clips) == 0 {
		return fault.New(fault.InvalidParams, "no clips given").WithHint("give at least one")
	}
	for i, c := range clips {
		if c.Channels != clips[0].Channels || c.Rate != clips[0].Rate {
			return fault.New(fault.InvalidParams, "sound %d has %d channels at %d Hz, the first has %d at %d Hz",
				i+1, c.Channels, c.Rate, clips[0].Channels, clips[0].Rate).
				WithHint("convert them with resample, to_mono or to_stereo first")
		}
	}
	return nil
}

// MinLevel is the level of silence, in decibels relative to full scale. The lowest
// level in a file of 16 bits is -96.
const MinLevel = -120.0

// SilenceThreshold is the level below which a clip counts as silent.
const SilenceThreshold = -60.0

// Peak is the largest absolute sample.
func (c Clip) Peak() float64 {
	var peak float32
	for _, s := range c.Samples {
		peak = max(peak, s, -s)
	}
	return float64(peak)
}

// RMS is the root mean square of the samples.
func (c Clip) RMS() float64 {
	if len(c.Samples) == 0 {
		return 0
	}
	var sum float64
	for _, s := range c.Samples {
		sum += float64(s) * float64(s)
	}
	return math.Sqrt(sum / float64(len(c.Samples)))
}

// Decibels converts an amplitude to decibels relative to full scale, at least
// MinLevel.
func Decibels(level float64) float64 {
	if level <= 0 {
		return MinLevel
	}
	return math.Max(MinLevel, 20*math.Log10(level))
}

// FromDecibels converts decibels to a factor.
func FromDecibels(db float64) float64 { return math.Pow(10, db/20) }

// Info summarizes a clip.
type Info struct {
	Duration   float64 `json:"duration" jsonschema:"seconds"`
	SampleRate int     `json:"sample_rate"`
	Channels   int     `json:"channels"`
	Frames     int     `json:"frames" jsonschema:"samples of each channel"`
	PeakDB     float64 `json:"peak_db" jsonschema:"loudest sample, in decibels below full scale"`
	MeanDB     float64 `json:"mean_db" jsonschema:"root mean square, in decibels below full scale"`
	IsSilent   bool    `json:"is_silent" jsonschema:"whether nothing in it is louder than -60 dB"`
}

// Info summarizes the clip.
func (c Clip) Info() Info {
	peak := Decibels(c.Peak())
	return Info{
		Duration: c.Seconds(), SampleRate: c.Rate, Channels: c.Channels, Frames: c.Frames(),
		PeakDB: peak, MeanDB: Decibels(c.RMS()), IsSilent: peak < SilenceThreshold,
	}
}

// Quality is the quality of resampling.
type Quality string

// The qualities: linear interpolation, or a windowed sinc with 16 or 64 zero
// crossings on either side.
const (
	Quick  Quality = "quick"
	Medium Quality = "medium"
	High   Quality = "high"
)

// Resample converts the clip to another rate; its length in seconds stays.
func (c Clip) Resample(rate int, quality Quality) (Clip, error) {
	if err := (Clip{Channels: c.Channels, Rate: rate}).Check(); err != nil {
		return Clip{}, err
	}
	frames := int(math.Round(float64(c.Frames()) * float64(rate) / float64(c.Rate)))
	out := Clip{Samples: make([]float32, frames*c.Channels), Channels: c.Channels, Rate: rate}
	switch quality {
	case Quick:
		out.interpolate(c)
	case Medium:
		out.convolve(c, 16)
	case High:
		out.convolve(c, 64)
	default:
		return Clip{}, fault.New(fault.InvalidParams, "unknown quality %q", string(quality)).WithHint("use quick, medium or high")
	}
	return out, nil
}

// interpolate computes each sample by linear interpolation.
func (c Clip) interpolate(from Clip) {
	last, step := from.Frames()-1, float64(from.Rate)/float64(c.Rate)
	for i := range c.Frames() {
		at := float64(i) * step
		left := min(int(at), last)
		right, part := min(left+1, last), float32(at-float64(left))
		for ch := range c.Channels {
			a, b := from.Samples[left*c.Channels+ch], from.Samples[right*c.Channels+ch]
			c.Samples[i*c.Channels+ch] = a + (b-a)*part
		}
	}
}

// convolve computes each sample with a windowed sinc. For a lower rate the sinc is
// wider, which removes frequencies that would alias.
func (c Clip) convolve(from Clip, crossings int) {
	step := float64(from.Rate) / float64(c.Rate)
	width := math.Max(1, step)
	reach := int(math.Ceil(float64(crossings) * width))
	sums := make([]float64, c.Channels)
	for i := range c.Frames() {
		at := float64(i) * step
		middle := int(at)
		clear(sums)
		var weights float64
		for j := max(0, middle-reach+1); j <= min(middle+reach, from.Frames()-1); j++ {
			weight := kernel((at-float64(j))/width, float64(crossings))
			weights += weight
			for ch := range sums {
				sums[ch] += weight * float64(from.Samples[j*c.Channels+ch])
			}
		}
		if weights == 0 {
			continue
		}
		for ch, sum := range sums {
			c.Samples[i*c.Channels+ch] = float32(sum / width)
		}
	}
}

// kernel is a sinc in a Blackman window.
func kernel(x, crossings float64) float64 {
	if math.Abs(x) >= crossings {
		return 0
	}
	if x == 0 {
		return 1
	}
	turn := math.Pi * x / crossings
	window := 0.42 + 0.5*math.Cos(turn) + 0.08*math.Cos(2*turn)
	return math.Sin(math.Pi*x) / (math.Pi * x) * window
}
