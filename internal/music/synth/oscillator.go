package synth

import "math"

// oscillator reads a sample at any speed.
type oscillator struct {
	data       []float32
	loop, end  uint64 // positions of the loop in data; without a loop, end of the sample
	looping    bool
	phase      uint64 // position with 32 bits of fraction
	step       uint64 // per frame, with 32 bits of fraction
	untilEnded bool   // the loop ends when the key is released
}

// maxStep is the highest speed: eight octaves and more above any sensible one.
const maxStep = 1 << 12

// tune sets the speed.
func (o *oscillator) tune(ratio float64) {
	o.step = uint64(min(max(ratio, 1e-6), maxStep) * (1 << 32))
}

// release lets a sample play to its end whose loop lasts only while the key is held.
func (o *oscillator) release() {
	if o.untilEnded && o.looping {
		o.looping, o.end = false, uint64(len(o.data))
	}
}

// skip goes on as fill does, without a sound. It reports whether the sample goes on.
func (o *oscillator) skip(frames int) bool {
	o.phase += o.step * uint64(frames) //nolint:gosec // positive
	o.wrap()
	return o.looping || o.phase>>32 < o.end
}

// wrap goes back to the start of the loop.
func (o *oscillator) wrap() {
	if o.looping && o.phase>>32 >= o.end {
		length := (o.end - o.loop) << 32
		o.phase = o.loop<<32 + (o.phase-o.loop<<32)%length
	}
}

// fill writes the next frames; after the end of the sample they are silent. It
// reports whether the sample goes on.
func (o *oscillator) fill(out []float32) bool {
	for len(out) > 0 {
		n := o.plain(out)
		out = out[n:]
		o.wrap()
		for len(out) > 0 && !o.inside() {
			if !o.looping && o.phase>>32 >= o.end {
				clear(out)
				o.phase += o.step * uint64(len(out))
				return false
			}
			out[0] = o.edge()
			out = out[1:]
			o.phase += o.step
			o.wrap()
		}
	}
	return o.looping || o.phase>>32 < o.end
}

// inside reports whether the four points around the position are neighbours in data.
func (o *oscillator) inside() bool {
	at := o.phase >> 32
	return at >= 1 && at+2 < o.end && (!o.looping || at != o.loop)
}

// plain writes frames as long as the position is inside, and returns how many.
func (o *oscillator) plain(out []float32) int {
	if !o.inside() {
		return 0
	}
	phase, step, data := o.phase, o.step, o.data
	last := (o.end - 2) << 32
	n := min(uint64(len(out)), (last-1-phase)/step+1)
	if o.looping && phase>>32 < o.loop { // up to the loop's start, which has another neighbour
		n = min(n, (o.loop<<32-1-phase)/step+1)
	}
	for i := range out[:n] {
		at := phase >> 32
		p := data[at-1 : at+3 : at+3]
		out[i] = cubic(p[0], p[1], p[2], p[3], float32(uint32(phase))*(1.0/(1<<32))) //nolint:gosec // the fraction
		phase += step
	}
	o.phase = phase
	return int(n) //nolint:gosec // at most len(out)
}

// edge is the value where a neighbour is on the other side of the loop or outside of
// the sample.
func (o *oscillator) edge() float32 {
	at := int64(o.phase >> 32)                       //nolint:gosec // below len(data)
	fraction := float32(uint32(o.phase)) / (1 << 32) //nolint:gosec // the fraction
	return cubic(o.point(at-1, at), o.point(at, at), o.point(at+1, at), o.point(at+2, at), fraction)
}

// point is a point of the sample near a position.
func (o *oscillator) point(i, from int64) float32 {
	loop, end := int64(o.loop), int64(o.end) //nolint:gosec // below len(data)
	if o.looping {
		switch {
		case i >= end:
			i = loop + (i-end)%(end-loop)
		case i < loop && from == loop:
			i = end - 1
		}
	}
	i = min(max(i, 0), int64(len(o.data))-1)
	return o.data[i]
}

// cubic interpolates between b and c by the curve through them whose slopes are those
// of their neighbours.
func cubic(a, b, c, d, x float32) float32 {
	c1 := 0.5 * (c - a)
	c2 := a - 2.5*b + 2*c - 0.5*d
	c3 := 0.5*(d-a) + 1.5*(b-c)
	return ((c3*x+c2)*x+c1)*x + b
}

// pitchRatio is the speed for an interval in cents.
func pitchRatio(cents float64) float64 { return math.Exp2(math.Floor(cents) / 1200) }
