package synth

import (
	"math"

	"github.com/luanette/luanette/internal/music/soundfont"
)

// voice is one sample that sounds for one note.
type voice struct {
	channel  *channel
	midiKey  uint8
	key      float64 // which the region may have changed
	velocity float64
	region   *region
	sample   soundfont.Sample
	started  int // number of the note, for stealing the oldest
	age      int // in blocks

	held      bool // the key is down
	sostenuto bool // the middle pedal holds the note
	released  bool
	changed   bool // a controller has moved
	cut       bool // it ends faster than its envelope

	osc            oscillator
	filter         filter
	volume, modEnv envelope
	modLFO, vibLFO lfo

	g           generators // with modulators
	pitch       float64    // in cents, without LFOs and envelope
	attenuation float64    // in centibels
	floor       float64    // the lowest attenuation that controllers may give, in centibels
	level       float64    // amplitude at the end of the last block
	left, right float32    // gain at the end of the last block
	sends       [2]float32 // gain of reverb and chorus at the end of the last block
}

// inaudible is the amplitude at which a voice ends: 90 dB below full scale, at the
// gain of the synthesizer.
const inaudible = 3e-5

// start prepares a voice whose fields up to osc are set.
func (v *voice) start(blocksPerSecond float64) {
	g := &v.region.generators
	if k := g.clamped(genKey); k >= 0 {
		v.key = k
	}
	if vel := g.clamped(genVelocity); vel >= 0 {
		v.velocity = vel
	}
	v.held, v.changed = true, true
	v.modLFO.step, v.vibLFO.step = 1, 1
	v.modulate(blocksPerSecond)
	v.modLFO.delay = math.Floor(seconds(v.g.clamped(genModLFODelay)) * blocksPerSecond)
	v.vibLFO.delay = math.Floor(seconds(v.g.clamped(genVibLFODelay)) * blocksPerSecond)
}

// modulate computes the generators from the controllers.
func (v *voice) modulate(blocksPerSecond float64) {
	if !v.changed {
		return
	}
	v.changed = false
	v.g = v.region.generators
	moving := 0.0
	for _, m := range v.region.modulators {
		value := v.value(m)
		v.g[m.Target] += value
		if m.Target == genAttenuation && (source(m.Source).moves() || source(m.Scale).moves()) {
			moving += max(value, 0)
		}
	}
	v.attenuation = v.g.clamped(genAttenuation)
	v.floor = max(0, v.g[genAttenuation]-moving)
	v.pitch = v.basePitch()
	if !v.cut {
		v.volume.tune(&v.g, genVolEnv, v.key, blocksPerSecond, 1000)
	}
	v.modEnv.tune(&v.g, genModEnv, v.key, blocksPerSecond, 1000)
	v.modLFO.tune(v.g.clamped(genModLFORate), blocksPerSecond)
	v.vibLFO.tune(v.g.clamped(genVibLFORate), blocksPerSecond)
}

// moves reports whether a source can change while a note sounds.
func (s source) moves() bool {
	n := s & 127
	return s&isMIDI != 0 || n == srcKeyPressure || n == srcPressure || n == srcWheel
}

// basePitch is the interval in cents from the pitch of the sample.
func (v *voice) basePitch() float64 {
	root := float64(v.sample.Root)
	if r := v.g.clamped(genRootKey); r >= 0 {
		root = r
	} else if root > 127 {
		root = 60 // the format's value for sounds without pitch
	}
	root -= float64(v.sample.Correction) / 100
	return v.g.clamped(genScaleTuning)*(v.key-root) + 100*v.g.clamped(genCoarseTune) + v.g.clamped(genFineTune) +
		v.channel.fine + 100*v.channel.coarse
}

// release begins the end of the note.
func (v *voice) release() {
	if v.released {
		return
	}
	v.released, v.held, v.sostenuto = true, false, false
	if v.volume.stage == inAttack && v.volume.value > 0 { // which is linear; the rest is in decibels
		v.volume.value = max(0, 1+200*math.Log10(v.volume.value)/fullRange)
	}
	if v.volume.stage == inDelay {
		v.volume.value = 0
	}
	v.volume.enter(inRelease)
	v.modEnv.enter(inRelease)
	v.osc.release()
}

// fullRange is the attenuation at the end of an envelope, in centibels.
const fullRange = 960

// silence ends the voice quickly, without a click.
func (v *voice) silence(blocks float64) {
	v.release()
	v.cut, v.volume.release = true, 1/max(1, blocks)
}

// target is the amplitude at the end of the block; ok is false when the voice has ended.
func (v *voice) target() (amp float64, ok bool) {
	e := &v.volume
	attenuation := v.attenuation - v.modLFO.value*v.g.clamped(genModLFOVolume)
	switch e.stage {
	case ended:
		return 0, false
	case inDelay:
		return 0, true
	case inAttack:
		return e.value * amplitude(attenuation), true
	}
	fallen := fullRange * (1 - e.value)
	if e.stage >= inDecay && amplitude(v.floor+fallen-math.Abs(v.g.clamped(genModLFOVolume))) < inaudible {
		return 0, false
	}
	return amplitude(attenuation + fallen), true
}

// advance computes the parameters of the next block. It returns the amplitude at its
// end, and false when the voice has ended.
func (v *voice) advance(rate, blocksPerSecond float64) (amp float64, ok bool) {
	v.modulate(blocksPerSecond)
	v.age++
	v.volume.next()
	v.modEnv.next()
	v.modLFO.next()
	v.vibLFO.next()
	if amp, ok = v.target(); !ok {
		return 0, false
	}
	env := v.modEnv.value
	if v.modEnv.stage == inAttack {
		env = 1 - concaveAt(1-env)
		env = max(env, 0)
	}
	v.osc.tune(float64(v.sample.Rate) / rate * pitchRatio(v.pitch+v.modLFO.value*v.g.clamped(genModLFOPitch)+
		v.vibLFO.value*v.g.clamped(genVibLFOPitch)+env*v.g.clamped(genModEnvPitch)))
	cutoff := v.g.clamped(genCutoff) + v.modLFO.value*v.g.clamped(genModLFOCutoff) + env*v.g.clamped(genModEnvCutoff)
	v.filter.tune(min(max(cutoff, 1500), 13500), v.g.clamped(genResonance), rate)
	return amp, true
}

// mix adds the next block to the buses; block is used for it. It returns false when
// the voice has ended.
func (v *voice) mix(amp float64, b *buses, block []float32) bool {
	if v.volume.stage == inDelay {
		return true
	}
	goes := v.osc.fill(block)
	if v.filter.on {
		v.filter.run(block)
	}
	// Equal power: both sides of a sound in the middle are 3 dB lower.
	turn := (v.g.clamped(genPan) + 500) / 1000 * math.Pi / 2
	v.left = ramp(b.left, block, v.left, float32(amp*math.Cos(turn)))
	v.right = ramp(b.right, block, v.right, float32(amp*math.Sin(turn)))
	for i, number := range [2]int{genReverb, genChorus} {
		if send := float32(amp * v.g.clamped(number) / 1000); send > 0 || v.sends[i] > 0 {
			v.sends[i] = ramp(b.sends[i], block, v.sends[i], send)
			b.used[i] = true
		}
	}
	return goes
}

// ramp adds a block with a gain that goes from one value to another.
func ramp(out, block []float32, from, to float32) float32 {
	step := (to - from) / float32(len(block))
	out = out[:len(block)]
	for i, s := range block {
		from += step
		out[i] += s * from
	}
	return to
}
