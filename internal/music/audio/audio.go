// Package audio reads, writes, measures and edits audio samples: WAV files, trimming,
// mixing, fading and resampling. Clips are in memory; the package plays no sound.
package audio

import (
	"math"
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
