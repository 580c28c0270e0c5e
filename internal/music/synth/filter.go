package synth

import "math"

// filter is a resonant low-pass of second order.
type filter struct {
	on             bool
	b0, b1, a1, a2 float32
	x1, x2, y1, y2 float32
	cutoff         float64 // in cents, of the coefficients
	resonance      float64 // in centibels, of the coefficients
}

// tune computes the coefficients where they must change. A filter whose cutoff is
// above what can be heard stays off.
func (f *filter) tune(cutoff, resonance, rate float64) {
	hz := hertz(cutoff)
	if limit := 0.45 * rate; hz >= limit {
		hz = limit
		if !f.on && resonance == 0 {
			return
		}
	}
	if f.on && math.Abs(cutoff-f.cutoff) < 0.5 && resonance == f.resonance {
		return
	}
	f.on, f.cutoff, f.resonance = true, cutoff, resonance
	// The format counts resonance from the height of the peak over the level at 0 Hz;
	// 0 is no peak, which is a quality of -3.01 dB. Half of a peak is taken back.
	q := math.Pow(10, (resonance/10-3.01)/20)
	gain := 1 / math.Sqrt(q*math.Sqrt2)
	if resonance == 0 {
		gain = 1
	}
	turn := 2 * math.Pi * hz / rate
	alpha, cos := math.Sin(turn)/(2*q), math.Cos(turn)
	a0 := 1 + alpha
	f.b1 = float32((1 - cos) / a0 * gain)
	f.b0 = f.b1 / 2
	f.a1, f.a2 = float32(-2*cos/a0), float32((1-alpha)/a0)
}

// run filters a block in place.
func (f *filter) run(block []float32) {
	x1, x2, y1, y2 := f.x1, f.x2, f.y1, f.y2
	for i, x := range block {
		y := f.b0*(x+x2) + f.b1*x1 - f.a1*y1 - f.a2*y2
		x2, x1, y2, y1 = x1, x, y1, y
		block[i] = y
	}
	f.x1, f.x2, f.y1, f.y2 = x1, x2, flushed(y1), flushed(y2)
}

// flushed is 0 for numbers so small that computing with them is slow.
func flushed(x float32) float32 {
	if x < 1e-15 && x > -1e-15 {
		return 0
	}
	return x
}
