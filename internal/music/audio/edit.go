package audio

import (
	"math"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
)

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
