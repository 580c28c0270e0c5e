package audio

import (
	"math"

	"github.com/luanette/luanette/internal/base/fault"
)

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
