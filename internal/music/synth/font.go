package synth

import (
	"io"
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
	global, zones := split(from.Zones)
	for _, pz := range zones {
		if pz.Target < 0 || pz.Target >= len(f.bank.Instruments) {
			continue
		}
		shared, parts := split(f.bank.Instruments[pz.Target].Zones)
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

// split separates a global zone from the others.
func split(zones []soundfont.Zone) (global soundfont.Zone, others []soundfont.Zone) {
	if len(zones) > 0 && zones[0].Target < 0 {
		return zones[0], zones[1:]
	}
	return soundfont.Zone{}, zones
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
	return span{uint8(amount & 0xff), uint8(amount >> 8 & 0xff)} //nolint:gosec // two bytes
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
	o = oscillator{data: data[:end], end: uint64(end), phase: uint64(start) << 32} //nolint:gosec // positive
	mode := int(r.generators[genLoopMode])
	loop, loopEnd := place(s.Loop, genLoop, genLoopCoarse), min(place(s.LoopEnd, genLoopEnd, genLoopEndCoarse), end)
	if (mode == 1 || mode == 3) && loopEnd-loop >= 4 {
		o.looping, o.untilEnded, o.loop, o.end = true, mode == 3, uint64(loop), uint64(loopEnd) //nolint:gosec // positive
	}
	return o, true, nil
}
