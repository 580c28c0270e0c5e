package synth

import "math"

// Generators by their numbers in the format.
const (
	genStart          = 0
	genEnd            = 1
	genLoop           = 2
	genLoopEnd        = 3
	genStartCoarse    = 4
	genModLFOPitch    = 5
	genVibLFOPitch    = 6
	genModEnvPitch    = 7
	genCutoff         = 8
	genResonance      = 9
	genModLFOCutoff   = 10
	genModEnvCutoff   = 11
	genEndCoarse      = 12
	genModLFOVolume   = 13
	genChorus         = 15
	genReverb         = 16
	genPan            = 17
	genModLFODelay    = 21
	genModLFORate     = 22
	genVibLFODelay    = 23
	genVibLFORate     = 24
	genModEnv         = 25 // delay, attack, hold, decay, sustain, release, key to hold, key to decay
	genVolEnv         = 33 // the same eight
	genKeys           = 43
	genVelocities     = 44
	genLoopCoarse     = 45
	genKey            = 46
	genVelocity       = 47
	genAttenuation    = 48
	genLoopEndCoarse  = 50
	genCoarseTune     = 51
	genFineTune       = 52
	genLoopMode       = 54
	genScaleTuning    = 56
	genExclusiveClass = 57
	genRootKey        = 58
	genCount          = 61
)

// Generators of an envelope, relative to genModEnv and genVolEnv.
const (
	envDelay = iota
	envAttack
	envHold
	envDecay
	envSustain
	envRelease
	envKeyHold
	envKeyDecay
)

// generators are the values of all generators of a voice.
type generators [genCount]float64

// limits is the default of a generator and its range.
type limits struct{ start, low, high float64 }

var (
	delayTime  = limits{-12000, -12000, 5000}
	longTime   = limits{-12000, -12000, 8000}
	keyTime    = limits{0, -1200, 1200}
	cents      = limits{0, -12000, 12000}
	optional   = limits{-1, -1, 127}
	slow       = limits{0, -16000, 4500}
	effect     = limits{0, 0, 1000}
	coarsePart = limits{0, -math.MaxInt16, math.MaxInt16}
)

// ranges has the default and the range of every generator that a voice uses.
var ranges = [genCount]limits{
	genStart: coarsePart, genEnd: coarsePart, genLoop: coarsePart, genLoopEnd: coarsePart,
	genStartCoarse: coarsePart, genEndCoarse: coarsePart, genLoopCoarse: coarsePart, genLoopEndCoarse: coarsePart,
	genModLFOPitch: cents, genVibLFOPitch: cents, genModEnvPitch: cents,
	genCutoff: {13500, 1500, 13500}, genResonance: {0, 0, 960}, genModLFOCutoff: cents, genModEnvCutoff: cents,
	genModLFOVolume: {0, -960, 960}, genChorus: effect, genReverb: effect, genPan: {0, -500, 500},
	genModLFODelay: delayTime, genModLFORate: slow, genVibLFODelay: delayTime, genVibLFORate: slow,
	genModEnv + envDelay: delayTime, genModEnv + envAttack: longTime, genModEnv + envHold: delayTime, genModEnv + envDecay: longTime,
	genModEnv + envSustain: effect, genModEnv + envRelease: longTime, genModEnv + envKeyHold: keyTime, genModEnv + envKeyDecay: keyTime,
	genVolEnv + envDelay: delayTime, genVolEnv + envAttack: longTime, genVolEnv + envHold: delayTime, genVolEnv + envDecay: longTime,
	genVolEnv + envSustain: {0, 0, 1440}, genVolEnv + envRelease: longTime, genVolEnv + envKeyHold: keyTime, genVolEnv + envKeyDecay: keyTime,
	genKey: optional, genVelocity: optional, genAttenuation: {0, 0, 1440},
	genCoarseTune: {0, -120, 120}, genFineTune: {0, -99 - 12700, 99 + 12700}, // with the pitch wheel
	genLoopMode: {0, 0, 3}, genScaleTuning: {100, 0, 1200}, genExclusiveClass: {0, 0, 127}, genRootKey: optional,
}

// defaults are the generators of a zone that sets none.
func defaults() (g generators) {
	for i, r := range ranges {
		g[i] = r.start
	}
	return g
}

// clamped is a generator in its range.
func (g *generators) clamped(number int) float64 {
	r := ranges[number]
	return min(max(g[number], r.low), r.high)
}

// ofInstrument reports whether only instruments can have a generator, not presets.
func ofInstrument(number int) bool {
	switch number {
	case genStart, genEnd, genLoop, genLoopEnd, genStartCoarse, genEndCoarse, genLoopCoarse, genLoopEndCoarse,
		genKey, genVelocity, genLoopMode, genExclusiveClass, genRootKey:
		return true
	}
	return false
}

// attenuationScale is what generators of attenuation count: the sound cards that the
// format was made for applied 0.4 of it, and fonts are made to sound right with that.
const attenuationScale = 0.4

// seconds converts timecents.
func seconds(timecents float64) float64 { return math.Exp2(timecents / 1200) }

// hertz converts absolute cents: 0 is 8.176 Hz, MIDI key 0.
func hertz(cents float64) float64 { return 8.175798915643707 * math.Exp2(cents/1200) }

// amplitude converts an attenuation in centibels.
func amplitude(centibels float64) float64 {
	return math.Exp2(centibels * (-math.Log2E * math.Ln10 / 200))
}
