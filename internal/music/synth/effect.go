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

// Settings of the reverb. They were found from the impulse response of FluidSynth with
// its default settings: a small room.
const (
	reverbTime  = 0.985 // seconds until it is 60 dB lower
	reverbTail  = 1.5 * reverbTime
	reverbLevel = 0.403
	reverbWidth = 0.5 // 0 is mono
	reverbSway  = 5.0 // frames at 44100 Hz by which the delays go up and down
	swayRate    = 1.0 // Hz
)

// reverbLines are the lengths of the delays in frames at 44100 Hz: primes, so that
// their echoes do not coincide.
var reverbLines = [8]int{2617, 3011, 3367, 3659, 4007, 4339, 4621, 4919}

// reverb is a network of delays that feed one another. Their lengths change slowly,
// so that no tone is favoured for long.
type reverb struct {
	lines [len(reverbLines)]delay
	turn  float64
	step  float64 // of turn per frame
	left  bool    // something is left to be heard
	quiet int     // frames since the last input
	tail  int     // frames that it sounds after its input
}

// delay is a line whose content comes back weaker.
type delay struct {
	data   []float32
	at     int
	gain   float32
	length float64
	sway   float64
	now    float64 // length at the end of the last block
}

func newReverb(rate int) *reverb {
	r := &reverb{tail: int(reverbTail * float64(rate)), step: 2 * math.Pi * swayRate / float64(rate)}
	scale := float64(rate) / 44100
	for i, n := range reverbLines {
		length := float64(n) * scale
		r.lines[i] = delay{
			data: make([]float32, int(length+reverbSway*scale)+4), length: length, now: length, sway: reverbSway * scale,
			gain: float32(math.Pow(10, -3*length/(reverbTime*float64(rate)))),
		}
	}
	return r
}

// read returns the frame a number of frames ago.
func (d *delay) read(ago float32) float32 {
	whole := int(ago)
	i := d.at - whole
	if i < 0 {
		i += len(d.data)
	}
	if n := len(d.data); i >= 2 && i < n-1 {
		p := d.data[i-2 : i+2 : i+2]
		return cubic(p[3], p[2], p[1], p[0], ago-float32(whole))
	}
	n := len(d.data)
	return cubic(d.data[(i+1)%n], d.data[i], d.data[(i+n-1)%n], d.data[(i+n-2)%n], ago-float32(whole))
}

// run adds the reverb of a block to it.
func (r *reverb) run(b *buses) {
	if b.used[0] {
		r.left, r.quiet = true, 0
	} else if r.quiet += len(b.left); r.quiet > r.tail {
		r.left = false
	}
	if !r.left {
		return
	}
	r.turn = math.Mod(r.turn+r.step*float64(len(b.left)), 2*math.Pi)
	var ago, step [len(reverbLines)]float32
	for i := range r.lines {
		d := &r.lines[i]
		ago[i] = float32(d.now)
		d.now = d.length + d.sway*math.Sin(r.turn+float64(i)*math.Pi/4)
		step[i] = (float32(d.now) - ago[i]) / float32(len(b.left))
	}
	for n, in := range b.sends[0] {
		left, right := r.frame(in, &ago)
		for i := range ago {
			ago[i] += step[i]
		}
		b.left[n] += (1+reverbWidth)/2*left + (1-reverbWidth)/2*right
		b.right[n] += (1+reverbWidth)/2*right + (1-reverbWidth)/2*left
	}
}

// frame computes one frame: every line gets the input and a mixture of all lines that
// keeps their energy (a Householder matrix, turned by one line).
func (r *reverb) frame(in float32, ago *[len(reverbLines)]float32) (left, right float32) {
	var o [len(reverbLines) + 1]float32
	var sum float32
	for i := range r.lines {
		d := &r.lines[i]
		o[i] = d.read(ago[i]) * d.gain
		sum += o[i]
	}
	o[len(reverbLines)] = o[0]
	sum *= 2.0 / float32(len(reverbLines))
	for i := range r.lines {
		d := &r.lines[i]
		d.data[d.at] = flushed(in + o[i+1] - sum)
		if d.at++; d.at == len(d.data) {
			d.at = 0
		}
	}
	left = o[0] - o[1] + o[2] - o[3] + o[4] - o[5] + o[6] - o[7]
	right = o[0] + o[1] - o[2] - o[3] + o[4] + o[5] - o[6] - o[7]
	return reverbLevel * left, reverbLevel * right
}
