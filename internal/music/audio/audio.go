// Package audio is sound as samples: read from WAV files and written to them,
// measured, cut, joined and brought to other rates. Everything is in memory and
// none of it is played.
package audio

import (
	"math"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// Clip is a piece of sound. Samples of one moment stand together, one for each
// channel; 1 and -1 are as loud as a file can say.
type Clip struct {
	Samples  []float32
	Channels int
	Rate     int // moments per second
}

// Bounds of what a Clip may be, so that a header alone cannot ask for much.
const (
	MaxChannels = 32
	MinRate     = 1000
	MaxRate     = 384_000
)

// Check tells what is wrong with a clip that came from elsewhere.
func (c Clip) Check() error {
	switch {
	case c.Channels < 1 || c.Channels > MaxChannels:
		return fault.New(fault.InvalidParams, "sound has 1 to %d channels, not %d", MaxChannels, c.Channels)
	case c.Rate < MinRate || c.Rate > MaxRate:
		return fault.New(fault.InvalidParams, "sound has a sample rate of %d to %d, not %d", MinRate, MaxRate, c.Rate)
	case len(c.Samples)%c.Channels != 0:
		return fault.New(fault.InvalidParams, "%d samples cannot be shared by %d channels", len(c.Samples), c.Channels)
	}
	return nil
}

// Frames is how many moments the clip has.
func (c Clip) Frames() int { return len(c.Samples) / c.Channels }

// Duration is how long it sounds.
func (c Clip) Duration() time.Duration {
	return time.Duration(float64(c.Frames()) / float64(c.Rate) * float64(time.Second))
}

// Seconds is how long it sounds.
func (c Clip) Seconds() float64 { return float64(c.Frames()) / float64(c.Rate) }

// with is another clip of the same kind.
func (c Clip) with(samples []float32) Clip {
	return Clip{Samples: samples, Channels: c.Channels, Rate: c.Rate}
}

// frameAt is the moment at a time in seconds, inside the clip.
func (c Clip) frameAt(seconds float64) int {
	frame := math.Round(seconds * float64(c.Rate))
	return int(math.Max(0, math.Min(frame, float64(c.Frames()))))
}

// Silence is a clip in which nothing sounds. It is no longer than an hour.
func Silence(seconds float64, rate, channels int) (Clip, error) {
	c := Clip{Channels: channels, Rate: rate}
	if err := c.Check(); err != nil {
		return Clip{}, err
	}
	if !(seconds >= 0 && seconds <= 3600) {
		return Clip{}, fault.New(fault.InvalidParams, "%g seconds of silence cannot be made", seconds).WithHint("use 0 to 3600")
	}
	c.Samples = make([]float32, int(math.Round(seconds*float64(rate)))*channels)
	return c, nil
}
