package synth

import (
	"io"
	"math"
	"slices"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/music/soundfont"
)

// Limits of a SoundFont.
const (
	MaxFont    = 512 << 20 // bytes of the file
	maxPairs   = 1 << 16   // zones of a preset times zones of its instruments
	maxRegions = 1 << 12   // regions of a preset; real ones have dozens
	maxPoints  = 1 << 28   // points of all samples that a piece uses, in memory
)

const drumBank = soundfont.DrumBank

// Font is a SoundFont. It reads a sample when a piece first needs it. It is safe for
// concurrent use.
type Font struct {
	bank *soundfont.Bank

	mu      sync.Mutex
	presets map[int]*preset // by bank and program
	samples map[[2]int64][]float32
	points  int64 // in samples
}

// Load reads the tables of a SoundFont of that size. r must stay readable as long as
// the font is used.
func Load(r io.ReaderAt, size int64) (*Font, error) {
	if size > MaxFont {
		return nil, fault.New(fault.Limit, "the SoundFont has %d bytes", size).WithHint("at most %d are supported", MaxFont)
	}
	bank, err := soundfont.ReadBank(r, size)
	if err != nil {
		return nil, err
	}
	if len(bank.Presets) == 0 {
		return nil, fault.New(fault.InvalidParams, "the SoundFont has no presets").WithHint("give another SoundFont 2 file (.sf2)")
	}
	return &Font{bank: bank, presets: map[int]*preset{}, samples: map[[2]int64][]float32{}}, nil
}

// preset is the regions of a preset.
type preset struct{ regions []region }

// region is a sample, when it is played, and how.
type region struct {
	keys, velocities span
	sample           int
	generators       generators
	modulators       []modulator
}

type span struct{ low, high uint8 }

func (s span) has(value uint8) bool { return s.low <= value && value <= s.high }

func (s span) empty() bool { return s.low > s.high }

func (s span) within(o span) span { return span{max(s.low, o.low), min(s.high, o.high)} }

// choose finds the preset for a bank and program. In its place it takes the standard
// drum kit, the same program of bank 0, or the first preset.
func (f *Font) choose(bank, program int) (*preset, error) {
	at := f.find(bank, program)
	if bank == drumBank && at < 0 {
		at = f.find(bank, 0)
	}
	if at < 0 {
		at = f.find(0, program)
	}
	if at < 0 {
		at = max(0, f.find(0, 0))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.presets[at]; p != nil {
		return p, nil
	}
	p, err := f.resolve(f.bank.Presets[at])
	if err == nil {
		f.presets[at] = p
	}
	return p, err
}

func (f *Font) find(bank, program int) int {
	return slices.IndexFunc(f.bank.Presets, func(p soundfont.BankPreset) bool { return p.Bank == bank && p.Program == program })
}

// resolve combines the zones of a preset with those of its instruments.
func (f *Font) resolve(from soundfont.BankPreset) (*preset, error) {
	p, pairs := &preset{}, 0
	global, zones := soundfont.Split(from.Zones)
	for _, pz := range zones {
		if pz.Target < 0 || pz.Target >= len(f.bank.Instruments) {
			continue
		}
		shared, parts := soundfont.Split(f.bank.Instruments[pz.Target].Zones)
		if pairs += len(parts); pairs > maxPairs || len(p.regions) > maxRegions {
			return nil, fault.New(fault.Limit, "preset %q has too many zones", from.Name).WithHint("at most %d are supported", maxRegions)
		}
		p.add(layer([]soundfont.Zone{global, pz}, generators{}), shared, parts, len(f.bank.Samples))
	}
	return p, nil
}

// add adds a region for every zone of an instrument, under a zone of the preset.
func (p *preset) add(above region, shared soundfont.Zone, parts []soundfont.Zone, samples int) {
	for _, iz := range parts {
		if iz.Target < 0 || iz.Target >= samples {
			continue
		}
		if r := above.over(layer([]soundfont.Zone{shared, iz}, defaults())); !r.keys.empty() && !r.velocities.empty() {
			r.sample = iz.Target
			p.regions = append(p.regions, r)
		}
	}
}

// layer applies zones one after another.
func layer(zones []soundfont.Zone, start generators) region {
	r := region{keys: span{0, 127}, velocities: span{0, 127}, generators: start}
	for _, z := range zones {
		for _, g := range z.Generators {
			switch {
			case g.Number == genKeys:
				r.keys = spanOf(g.Amount)
			case g.Number == genVelocities:
				r.velocities = spanOf(g.Amount)
			case g.Number == genAttenuation:
				r.generators[g.Number] = attenuationScale * float64(g.Amount)
			case g.Number < genCount:
				r.generators[g.Number] = float64(g.Amount)
			}
		}
		r.modulators = replaced(r.modulators, slices.DeleteFunc(slices.Clone(z.Modulators), func(m modulator) bool { return !usable(m) }))
	}
	return r
}

func spanOf(amount int16) span {
	return span{uint8(amount & 0xff), uint8(amount >> 8 & 0xff)}
}

// over adds the zones of a preset to those of an instrument.
func (r region) over(below region) region {
	out := region{keys: r.keys.within(below.keys), velocities: r.velocities.within(below.velocities), generators: below.generators}
	for i, v := range r.generators {
		if !ofInstrument(i) {
			out.generators[i] += v
		}
	}
	out.modulators = added(replaced(defaultModulators(), below.modulators), r.modulators)
	return out
}

// data reads the points of a sample, once.
func (f *Font) data(s soundfont.Sample) ([]float32, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	place := [2]int64{s.Start, s.End}
	if data := f.samples[place]; data != nil {
		return data, nil
	}
	if err := f.bank.Check(s); err != nil {
		return nil, err
	}
	if f.points += s.End - s.Start; f.points > maxPoints {
		return nil, fault.New(fault.Limit, "the samples of the music need more than %d MB", maxPoints*4>>20).WithHint("use a smaller SoundFont")
	}
	data, err := f.bank.Points(s)
	if err == nil {
		f.samples[place] = data
	}
	return data, err
}

// oscillator returns the oscillator for a region; ok is false if it has no sound.
func (f *Font) oscillator(r *region) (o oscillator, ok bool, err error) {
	s := f.bank.Samples[r.sample]
	if s.End-s.Start < 4 || s.Rate < 100 {
		return o, false, nil
	}
	data, err := f.data(s)
	if err != nil {
		return o, false, err
	}
	size := s.End - s.Start
	place := func(at int64, fine, coarse int) int64 {
		return min(max(at-s.Start+int64(r.generators[fine])+32768*int64(r.generators[coarse]), 0), size)
	}
	start, end := place(s.Start, genStart, genStartCoarse), place(s.End, genEnd, genEndCoarse)
	if end-start < 4 {
		return o, false, nil
	}
	o = oscillator{data: data[:end], end: uint64(end), phase: uint64(start) << 32}
	mode := int(r.generators[genLoopMode])
	loop, loopEnd := place(s.Loop, genLoop, genLoopCoarse), min(place(s.LoopEnd, genLoopEnd, genLoopEndCoarse), end)
	if (mode == 1 || mode == 3) && loopEnd-loop >= 4 {
		o.looping, o.untilEnded, o.loop, o.end = true, mode == 3, uint64(loop), uint64(loopEnd)
	}
	return o, true, nil
}

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
		return int16(min(max(int(was)+int(amount), math.MinInt16), math.MaxInt16))
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
