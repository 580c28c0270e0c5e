package synth

import (
	"bytes"

	"github.com/luanette/luanette/internal/music/smf"
)

// Limits of the synthesizer.
const (
	polyphony = 256   // voices at once
	shortest  = 0.01  // seconds that a note sounds at least
	baseGain  = 0.227 // headroom for many notes together; as loud as FluidSynth with its gain of 0.2
)

// machine turns MIDI events into sound, block by block.
type machine struct {
	font            *Font
	rate            float64
	frames          int // of a block
	blocksPerSecond float64
	channels        [16]channel
	voices          []*voice
	idle            []*voice
	notes           int
	out             buses
	scratch         []float32
	reverb          *reverb
	chorus          *chorus
	wet             bool // a voice of this block has reverb
	silent          bool // only the course of time is computed, not the sound
}

// buses are the sums of all voices in a block.
type buses struct {
	left, right []float32
	sends       [2][]float32 // to reverb and chorus
	used        [2]bool      // whether there is something in a send
}

// newMachine starts a synthesizer. A block lasts about 1.5 ms at every rate.
func newMachine(f *Font, rate int, silent bool) *machine {
	frames := max(16, (64*rate+22050)/44100)
	m := &machine{
		font: f, rate: float64(rate), frames: frames, blocksPerSecond: float64(rate) / float64(frames), silent: silent,
		scratch: make([]float32, frames), reverb: newReverb(rate), chorus: newChorus(rate, frames),
		out: buses{left: make([]float32, frames), right: make([]float32, frames), sends: [2][]float32{make([]float32, frames), make([]float32, frames)}},
	}
	m.reset()
	return m
}

func (m *machine) reset() {
	for i := range m.channels {
		m.channels[i].number = i
		m.channels[i].reset()
	}
}

// play handles an event.
func (m *machine) play(e smf.Event) error {
	if e.Kind == smf.SysEx {
		m.exclusive(e.Bytes)
		return nil
	}
	c, key := &m.channels[e.Channel&15], e.Data1&127
	switch e.Kind {
	case smf.NoteOff:
		m.noteOff(c, key)
	case smf.NoteOn:
		if e.Data2 == 0 {
			m.noteOff(c, key)
			return nil
		}
		return m.noteOn(c, key, e.Data2&127)
	case smf.Aftertouch:
		c.keyPressure[key] = e.Data2 & 127
		m.touch(c)
	case smf.ControlChange:
		m.control(c, key, e.Data2&127)
	case smf.ProgramChange:
		c.program, c.preset = int(key), nil
	case smf.ChannelAftertouch:
		c.pressure = key
		m.touch(c)
	case smf.PitchBend:
		c.wheel = e.Bend() + wheelMiddle
		m.touch(c)
	}
	return nil
}

// resets are the messages that set an instrument to its state at the start: General
// MIDI 1 and 2, and those of two makers.
var resets = [][]byte{
	{0x7e, 0x7f, 0x09, 0x01}, {0x7e, 0x7f, 0x09, 0x03},
	{0x41, 0x10, 0x42, 0x12, 0x40, 0x00, 0x7f, 0x00, 0x41}, {0x43, 0x10, 0x4c, 0x00, 0x00, 0x7e, 0x00},
}

func (m *machine) exclusive(message []byte) {
	for _, r := range resets {
		if bytes.Equal(bytes.TrimSuffix(message, []byte{0xf7}), r) {
			for _, v := range m.voices {
				v.silence(m.blocksPerSecond * shortest)
			}
			m.reset()
		}
	}
}

// touch makes the voices of a channel follow its controllers.
func (m *machine) touch(c *channel) {
	for _, v := range m.voices {
		if v.channel == c {
			v.changed = true
		}
	}
}

func (m *machine) control(c *channel, number, value uint8) {
	switch number {
	case ccSoundOff:
		m.each(c, func(v *voice) { v.silence(m.blocksPerSecond * shortest) })
	case ccReset:
		c.resetControls()
		m.each(c, func(v *voice) { v.sostenuto = false })
		m.lift(c)
	case ccNotesOff, ccNotesOff + 1, ccNotesOff + 2, ccNotesOff + 3, ccNotesOff + 4:
		m.each(c, func(v *voice) { v.held = false })
		m.lift(c)
	case ccSostenuto:
		c.set(number, value)
		m.each(c, func(v *voice) { v.sostenuto = value >= 64 && (v.held || v.sostenuto) })
		m.lift(c)
	case ccSustain:
		c.set(number, value)
		m.lift(c)
	default:
		c.set(number, value)
	}
	m.touch(c)
}

func (m *machine) each(c *channel, do func(*voice)) {
	for _, v := range m.voices {
		if v.channel == c {
			do(v)
		}
	}
}

// lift releases the voices that neither a key nor a pedal holds.
func (m *machine) lift(c *channel) {
	m.each(c, func(v *voice) {
		if m.free(v) {
			v.release()
		}
	})
}

// free reports whether neither a key nor a pedal holds a voice, and it has sounded for
// the shortest time.
func (m *machine) free(v *voice) bool {
	return !v.held && !v.sostenuto && !v.channel.holds() && float64(v.age) >= m.blocksPerSecond*shortest
}

func (m *machine) noteOff(c *channel, key uint8) {
	m.each(c, func(v *voice) {
		if v.midiKey == key {
			v.held = false
		}
	})
	m.lift(c)
}

// noteOn starts a voice for every region of the preset that has the key and velocity.
func (m *machine) noteOn(c *channel, key, velocity uint8) (err error) {
	if c.preset == nil {
		if c.preset, err = m.font.choose(c.bank, c.program); err != nil {
			return err
		}
	}
	m.each(c, func(v *voice) { // the same key again
		if v.midiKey == key {
			v.release()
		}
	})
	m.notes++
	for i := range c.preset.regions {
		r := &c.preset.regions[i]
		if !r.keys.has(key) || !r.velocities.has(velocity) {
			continue
		}
		osc, ok, err := m.font.oscillator(r)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		m.exclude(c, int(r.generators[genExclusiveClass]))
		v := m.take()
		*v = voice{channel: c, midiKey: key, key: float64(key), velocity: float64(velocity), region: r, sample: m.font.bank.Samples[r.sample], started: m.notes, osc: osc}
		v.start(m.blocksPerSecond)
		m.voices = append(m.voices, v)
	}
	return nil
}

// exclude ends the voices of earlier notes in an exclusive class: an open hi-hat ends
// when it is closed.
func (m *machine) exclude(c *channel, class int) {
	if class == 0 {
		return
	}
	m.each(c, func(v *voice) {
		if v.started != m.notes && int(v.region.generators[genExclusiveClass]) == class {
			v.silence(m.blocksPerSecond * seconds(-200))
		}
	})
}

// take returns an idle voice, or the one that is missed least: released before held,
// then quiet before loud, then old before new.
func (m *machine) take() *voice {
	if len(m.voices) >= polyphony {
		worst := 0
		for i, v := range m.voices {
			if v.lessMissed(m.voices[worst]) {
				worst = i
			}
		}
		m.remove(worst)
	}
	if n := len(m.idle); n > 0 {
		v := m.idle[n-1]
		m.idle = m.idle[:n-1]
		return v
	}
	return &voice{}
}

func (v *voice) lessMissed(o *voice) bool {
	if v.released != o.released {
		return v.released
	}
	if v.level != o.level && v.age > 0 && o.age > 0 {
		return v.level < o.level
	}
	return v.started < o.started
}

// remove ends a voice; the others keep their order, so that sums are the same in
// every run.
func (m *machine) remove(i int) {
	m.idle = append(m.idle, m.voices[i])
	m.voices = append(m.voices[:i], m.voices[i+1:]...)
}

// block computes the next block into out.
func (m *machine) block() {
	if !m.silent {
		clear(m.out.left)
		clear(m.out.right)
		clear(m.out.sends[0])
		clear(m.out.sends[1])
		m.out.used = [2]bool{}
	}
	m.wet = false
	for i := 0; i < len(m.voices); {
		if m.sound(m.voices[i]) {
			i++
		} else {
			m.remove(i)
		}
	}
	if !m.silent {
		m.reverb.run(&m.out)
		m.chorus.run(&m.out)
	}
}

// sound computes the next block of a voice. It returns false when the voice has ended.
func (m *machine) sound(v *voice) bool {
	if m.free(v) {
		v.release() // its key was up before the shortest time
	}
	amp, ok := v.advance(m.rate, m.blocksPerSecond)
	if !ok {
		if !m.silent && v.level > 0 {
			v.mix(0, &m.out, m.scratch) // down to nothing, without a click
		}
		return false
	}
	amp *= baseGain
	v.level = amp
	m.wet = m.wet || v.g[genReverb] > 0
	if m.silent {
		return v.volume.stage == inDelay || v.osc.skip(m.frames)
	}
	return v.mix(amp, &m.out, m.scratch)
}

// finish releases everything that is still held.
func (m *machine) finish() {
	for i := range m.channels {
		m.channels[i].controls[ccSustain] = 0
	}
	for _, v := range m.voices {
		v.held, v.sostenuto = false, false
		v.release()
	}
}

// MIDI controllers that are treated here.
const (
	ccBank         = 0
	ccModulation   = 1
	ccData         = 6
	ccVolume       = 7
	ccBalance      = 8
	ccPan          = 10
	ccExpression   = 11
	ccDataLow      = 38
	ccSustain      = 64
	ccSostenuto    = 66
	ccReverb       = 91
	ccChorus       = 93
	ccNRPNLow      = 98
	ccNRPNHigh     = 99
	ccRPNLow       = 100
	ccRPNHigh      = 101
	ccSoundOff     = 120
	ccReset        = 121
	ccNotesOff     = 123
	firstSound     = 70 // sound controllers, whose middle means no change
	lastSound      = 79
	drumChannel    = 9
	wheelMiddle    = 8192
	wheelSemitones = 2.0
	noParameter    = 0x3fff
)

// channel is the state of a MIDI channel.
type channel struct {
	number      int
	bank        int
	program     int
	preset      *preset
	controls    [128]uint8
	keyPressure [128]uint8
	pressure    uint8
	wheel       int
	wheelRange  float64 // in semitones
	parameter   int     // the registered parameter that data entry sets
	fine        float64 // tuning in cents
	coarse      float64 // tuning in semitones
}

// reset sets everything as at the start of the music.
func (c *channel) reset() {
	*c = channel{number: c.number, wheelRange: wheelSemitones}
	if c.number == drumChannel {
		c.bank = drumBank
	}
	c.resetControls()
	c.controls[ccVolume], c.controls[ccPan], c.controls[ccBalance] = 100, 64, 64
	for i := firstSound; i <= lastSound; i++ {
		c.controls[i] = 64
	}
}

// resetControls does what the message "reset all controllers" does (RP-015): volume,
// pan, effects, sounds and tuning stay.
func (c *channel) resetControls() {
	for i := range c.controls {
		switch {
		case i == ccVolume, i == ccPan, i == ccBalance, i == ccBank, i == 32, i >= firstSound && i <= lastSound, i >= 91 && i <= 95:
		default:
			c.controls[i] = 0
		}
	}
	c.controls[ccExpression] = 127
	c.keyPressure, c.pressure = [128]uint8{}, 0
	c.wheel, c.parameter = wheelMiddle, noParameter
}

// holds reports whether the sustain pedal is down.
func (c *channel) holds() bool { return c.controls[ccSustain] >= 64 }

// set sets a controller that needs no more than its value.
func (c *channel) set(number, value uint8) {
	c.controls[number] = value
	switch number {
	case ccBank:
		if c.number != drumChannel {
			c.bank = int(value)
		}
	case ccNRPNLow, ccNRPNHigh:
		c.parameter = noParameter
	case ccRPNLow, ccRPNHigh:
		c.parameter = int(c.controls[ccRPNHigh])<<7 | int(c.controls[ccRPNLow])
	case ccData, ccDataLow:
		c.enter(float64(c.controls[ccData]), float64(c.controls[ccDataLow]))
	}
}

// enter sets the registered parameter: range of the pitch wheel, or tuning.
func (c *channel) enter(high, low float64) {
	switch c.parameter {
	case 0:
		c.wheelRange = high + low/100
	case 1:
		c.fine = (high*128 + low - wheelMiddle) / wheelMiddle * 100
	case 2:
		c.coarse = high - 64
	}
}
