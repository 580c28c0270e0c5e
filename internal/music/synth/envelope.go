package synth

import "math"

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
