package synth

import "math"

// Settings of the chorus, found from the impulse response of FluidSynth with its
// default settings.
const (
	chorusRate  = 0.3   // Hz
	chorusDepth = 0.008 // seconds
)

// chorusVoices is how strong each voice is on the left and right. Two are wider than
// the speakers.
var chorusVoices = [][2]float32{{-3, 3.667}, {0.667, 0.667}, {3.667, -3}}

// chorus adds copies whose delay goes up and down.
type chorus struct {
	data  []float32
	at    int
	turn  float64 // of the first voice
	step  float64 // turn per frame
	depth float64 // in frames
	quiet int     // frames since the last input
}

func newChorus(rate, block int) *chorus {
	depth := chorusDepth * float64(rate)
	return &chorus{data: make([]float32, int(2*depth)+block+4), step: 2 * math.Pi * chorusRate / float64(rate), depth: depth, quiet: math.MaxInt32}
}

// run adds the chorus of a block to it. The delay of each voice goes straight from its
// value at the start of the block to that at the end.
func (c *chorus) run(b *buses) {
	frames := len(b.left)
	start := c.turn
	c.turn = math.Mod(c.turn+c.step*float64(frames), 2*math.Pi)
	if b.used[1] {
		c.quiet = 0
	} else if c.quiet > len(c.data) {
		return
	} else {
		c.quiet += frames
	}
	for n, s := range b.sends[1] {
		c.data[(c.at+n)%len(c.data)] = s
	}
	for i, sides := range chorusVoices {
		phase := start + 2*math.Pi*float64(i)/float64(len(chorusVoices)) - math.Pi/3
		from, to := c.delay(phase), c.delay(phase+c.step*float64(frames))
		for n := range frames {
			back := float64(c.at+n) - from - (to-from)*float64(n)/float64(frames) + float64(len(c.data))
			whole := int(back)
			part := float32(back - float64(whole))
			x, y := c.data[whole%len(c.data)], c.data[(whole+1)%len(c.data)]
			s := x + (y-x)*part
			b.left[n] += sides[0] * s
			b.right[n] += sides[1] * s
		}
	}
	c.at = (c.at + frames) % len(c.data)
}

// delay is the delay in frames at a phase.
func (c *chorus) delay(phase float64) float64 { return 1 + c.depth*(1+math.Sin(phase))/2 }
