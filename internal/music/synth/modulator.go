package synth

import (
	"math"

	"github.com/luanette/luanette/internal/music/soundfont"
)

// modulator changes a generator by controllers.
type modulator = soundfont.Modulator

// source is the controller of a modulator: its number, and how its value is mapped.
type source uint16

// Controllers of a source that are not MIDI controllers.
const (
	srcNone        = 0
	srcVelocity    = 2
	srcKey         = 3
	srcKeyPressure = 10
	srcPressure    = 13
	srcWheel       = 14
	srcWheelRange  = 16
	srcLink        = 127
)

// Bits of a source.
const (
	isMIDI     = 1 << 7
	descending = 1 << 8
	bipolar    = 1 << 9
	concave    = 1 << 10
	convex     = 2 << 10
	switched   = 3 << 10
	curveMask  = 63 << 10
)

// defaultModulators are those of the format, section 8.4. Velocity to filter cutoff is
// left out, as in most synthesizers: fonts sound dull with it.
func defaultModulators() []modulator {
	quieter := uint16(descending | concave)
	return []modulator{
		{Source: srcVelocity | quieter, Target: genAttenuation, Amount: 960},
		{Source: isMIDI | ccVolume | quieter, Target: genAttenuation, Amount: 960},
		{Source: isMIDI | ccExpression | quieter, Target: genAttenuation, Amount: 960},
		{Source: srcPressure, Target: genVibLFOPitch, Amount: 50},
		{Source: isMIDI | ccModulation, Target: genVibLFOPitch, Amount: 50},
		{Source: isMIDI | ccPan | bipolar, Target: genPan, Amount: 500},
		{Source: isMIDI | ccReverb, Target: genReverb, Amount: 200},
		{Source: isMIDI | ccChorus, Target: genChorus, Amount: 200},
		{Source: srcWheel | bipolar, Target: genFineTune, Amount: 12700, Scale: srcWheelRange},
	}
}

// velocityToCutoff is the default modulator that is left out. A font that changes its
// amount is meant to change it from none.
func velocityToCutoff(m modulator) bool {
	return m.Target == genCutoff && m.Amount == -2400 && m.Source == srcVelocity|descending
}

// same reports whether one modulator takes the place of another.
func same(a, b modulator) bool {
	return a.Source == b.Source && a.Target == b.Target && a.Scale == b.Scale
}

// usable reports whether a modulator has an effect here: one that feeds another
// modulator has none, and a few sources mean nothing.
func usable(m modulator) bool {
	return m.Target < genCount && source(m.Source).valid() && (m.Scale == 0 || source(m.Scale).valid()) &&
		(m.Transform == 0 || m.Transform == 2) && !velocityToCutoff(m)
}

func (s source) valid() bool {
	n := int(s & 127)
	if s&curveMask > switched {
		return false
	}
	if s&isMIDI != 0 { // bank, data entry and channel mode messages are no controllers
		return n != 0 && n != 6 && n != 32 && n != 38 && (n < 98 || n > 101) && n < 120
	}
	switch n {
	case srcVelocity, srcKey, srcKeyPressure, srcPressure, srcWheel, srcWheelRange:
		return true
	}
	return false
}

// replaced returns the list with each of the modulators in place of the one that is
// the same, or after the others.
func replaced(list, more []modulator) []modulator {
	return merged(list, more, func(_, amount int16) int16 { return amount })
}

// added returns the list with the amounts of modulators of a preset added.
func added(list, more []modulator) []modulator {
	return merged(list, more, func(was, amount int16) int16 {
		return int16(min(max(int(was)+int(amount), math.MinInt16), math.MaxInt16)) //nolint:gosec // clamped
	})
}

func merged(list, more []modulator, amount func(was, is int16) int16) []modulator {
	list = append([]modulator(nil), list...)
next:
	for _, m := range more {
		for i := range list {
			if same(list[i], m) {
				list[i].Amount = amount(list[i].Amount, m.Amount)
				continue next
			}
		}
		list = append(list, m)
	}
	return list
}

// value is what a modulator adds to its generator for a voice.
func (v *voice) value(m modulator) float64 {
	out := float64(m.Amount) * source(m.Source).mapped(v)
	if m.Scale != 0 {
		out *= source(m.Scale).mapped(v)
	}
	if m.Transform == 2 {
		out = math.Abs(out)
	}
	return out
}

// mapped is the value of a controller for a voice, from 0 to 1 or from -1 to 1.
func (s source) mapped(v *voice) float64 {
	x := s.read(v)
	if s&descending != 0 {
		x = 1 - x
	}
	if s&bipolar == 0 {
		return s.curve(x)
	}
	if x = 2*x - 1; x < 0 {
		if s&curveMask == switched {
			return -1
		}
		return -s.curve(-x)
	}
	if s&curveMask == switched {
		return 1
	}
	return s.curve(x)
}

// read is the value of a controller from 0 to 1.
func (s source) read(v *voice) float64 {
	n := int(s & 127)
	if s&isMIDI != 0 {
		value := float64(v.channel.controls[n])
		if n == ccPan || n == ccBalance { // 64 is the middle, so 0 and 1 are the same
			return max(value-1, 0) / 126
		}
		return value / 127
	}
	switch n {
	case srcVelocity:
		return v.velocity / 127
	case srcKey:
		return v.key / 127
	case srcKeyPressure:
		return float64(v.channel.keyPressure[v.midiKey]) / 127
	case srcPressure:
		return float64(v.channel.pressure) / 127
	case srcWheel:
		return float64(v.channel.wheel) / 16384
	case srcWheelRange:
		return v.channel.wheelRange / 127
	}
	return 0
}

// curve maps a value from 0 to 1 by the source's curve.
func (s source) curve(x float64) float64 {
	switch s & curveMask {
	case concave:
		return concaveAt(x)
	case convex:
		return 1 - concaveAt(1-x)
	case switched:
		if x < 0.5 {
			return 0
		}
		return 1
	}
	return x
}

// concaveAt is the curve that turns a velocity into decibels: with 96 dB for the whole
// range, the amplitude is the square of what is missing to 1.
func concaveAt(x float64) float64 {
	if x >= 1 {
		return 1
	}
	return min(1, -40.0/96*math.Log10(1-x))
}
