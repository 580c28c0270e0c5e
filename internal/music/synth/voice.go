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

// stage is a part of an envelope.
type stage int

const (
	inDelay stage = iota
	inAttack
	inHold
	inDecay
	inSustain
	inRelease
	ended
)

// envelope is a value from 0 to 1 that changes once per block.
type envelope struct {
	stage   stage
	value   float64
	waited  float64 // blocks since the stage began
	delay   float64 // lengths in blocks
	hold    float64
	attack  float64 // changes per block
	decay   float64
	release float64
	sustain float64
}

// tune sets the times from the eight generators that begin at first.
func (e *envelope) tune(g *generators, first int, key, blocksPerSecond, scale float64) {
	blocks := func(number int, perKey float64) float64 {
		return seconds(g.clamped(first+number)+perKey) * blocksPerSecond
	}
	e.delay = math.Floor(blocks(envDelay, 0))
	e.attack = 1 / math.Floor(1+blocks(envAttack, 0))
	e.hold = math.Round(blocks(envHold, g.clamped(first+envKeyHold)*(60-key)))
	e.decay = 1 / max(1, math.Round(blocks(envDecay, g.clamped(first+envKeyDecay)*(60-key))))
	e.release = 1 / math.Floor(1+blocks(envRelease, 0))
	e.sustain = max(0, 1-g.clamped(first+envSustain)/scale)
}

// next goes on by one block. A stage of no length is passed over.
func (e *envelope) next() {
	if e.stage == inDelay && e.waited >= e.delay {
		e.enter(inAttack)
	}
	if e.stage == inHold && e.waited >= e.hold {
		e.enter(inDecay)
	}
	e.waited++
	switch e.stage {
	case inAttack:
		if e.value += e.attack; e.value >= 1 {
			e.value = 1
			e.enter(inHold)
		}
	case inDecay:
		if e.value -= e.decay; e.value <= e.sustain {
			e.value = e.sustain
			e.enter(inSustain)
		}
	case inRelease:
		if e.value -= e.release; e.value <= 0 {
			e.value = 0
			e.enter(ended)
		}
	}
}

func (e *envelope) enter(s stage) { e.stage, e.waited = s, 0 }

// lfo is a triangle from -1 to 1 that begins at 0 after a delay.
type lfo struct {
	value, step, delay float64
}

// tune sets the rate; the direction stays.
func (l *lfo) tune(rateCents, blocksPerSecond float64) {
	step := min(1, 4*hertz(rateCents)/blocksPerSecond)
	l.step = math.Copysign(step, l.step)
}

// next goes on by one block.
func (l *lfo) next() {
	if l.delay > 0 {
		l.delay--
		return
	}
	if l.value += l.step; l.value > 1 {
		l.value, l.step = 2-l.value, -l.step
	} else if l.value < -1 {
		l.value, l.step = -2-l.value, -l.step
	}
}

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
	o.phase += o.step * uint64(frames)
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
		out[i] = cubic(p[0], p[1], p[2], p[3], float32(uint32(phase))*(1.0/(1<<32)))
		phase += step
	}
	o.phase = phase
	return int(n) // at most len(out)
}

// edge is the value where a neighbour is on the other side of the loop or outside of
// the sample.
func (o *oscillator) edge() float32 {
	at := int64(o.phase >> 32) // below len(data)
	fraction := float32(uint32(o.phase)) / (1 << 32)
	return cubic(o.point(at-1, at), o.point(at, at), o.point(at+1, at), o.point(at+2, at), fraction)
}

// point is a point of the sample near a position.
func (o *oscillator) point(i, from int64) float32 {
	loop, end := int64(o.loop), int64(o.end) // below len(data)
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
