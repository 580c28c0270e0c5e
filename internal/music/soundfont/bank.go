package soundfont

import (
	"encoding/binary"
	"io"

	"github.com/luanette/luanette/internal/base/fault"
)

// Bank is everything of a file but the samples themselves: what a synthesizer needs.
type Bank struct {
	Presets     []BankPreset
	Instruments []Instrument
	Samples     []Sample

	info   Info
	data   io.ReaderAt
	high   chunkAt // the upper 16 bits of the samples
	low    chunkAt // the lower 8 bits; empty in a font of 16 bits
	points int64   // how many samples there are
}

// BankPreset is a preset with its zones.
type BankPreset struct {
	Bank, Program int
	Name          string
	Zones         []Zone
}

// Instrument is a set of zones that presets refer to.
type Instrument struct {
	Name  string
	Zones []Zone
}

// Zone is generators and modulators. The first zone of a preset or instrument is
// global if it has no target: its values are defaults of the others.
type Zone struct {
	Target     int // index of an instrument or a sample; -1 if there is none
	Generators []Generator
	Modulators []Modulator
}

// Split separates the global zone from the others; without one, it is empty.
func Split(zones []Zone) (global Zone, others []Zone) {
	if len(zones) > 0 && zones[0].Target < 0 {
		return zones[0], zones[1:]
	}
	return Zone{Target: -1}, zones
}

// Generator sets a parameter of the sound, by the number that the format gives it.
type Generator struct {
	Number int
	Amount int16
}

// Modulator changes the generator Target by a controller.
type Modulator struct {
	Source    uint16
	Target    uint16
	Amount    int16
	Scale     uint16 // a second controller, which multiplies
	Transform uint16
}

// Sample is the header of a sample. Positions count from the first sample of the
// file.
type Sample struct {
	Name       string
	Start, End int64
	Loop       int64
	LoopEnd    int64
	Rate       int
	Root       int
	Correction int // in cents
	Type       int
}

// Flags of Sample.Type.
const (
	compressed = 0x10
	inROM      = 0x8000
)

// chunkAt is where the content of a chunk is.
type chunkAt struct{ at, length int64 }

const modulatorSize = 10

// maxModulators is the largest number of modulators of a zone. Each costs time in
// every note; real zones have up to some thirty.
const maxModulators = 256

// ReadBank reads the tables of a file of that size. r must stay readable while
// samples are read from the bank.
func ReadBank(r io.ReaderAt, size int64) (*Bank, error) {
	b := &reader{tables: map[string][]byte{}}
	if err := b.read(r, size); err != nil {
		return nil, err
	}
	if err := b.complete(); err != nil {
		return nil, err
	}
	bank := &Bank{info: b.info, data: r, high: b.samples, low: b.lowBytes, points: b.samples.length / 2}
	if bank.low.length < bank.points { // absent, or not of this font
		bank.low = chunkAt{}
	}
	instrumentZones, err := fullZones(b.tables["ibag"], b.tables["igen"], b.tables["imod"], genSample)
	if err != nil {
		return nil, err
	}
	presetZones, err := fullZones(b.tables["pbag"], b.tables["pgen"], b.tables["pmod"], genInstrument)
	if err != nil {
		return nil, err
	}
	records(b.tables["phdr"], presetSize, func(r, next []byte) {
		first, end := part(word(r, 24), word(next, 24), len(presetZones))
		bank.Presets = append(bank.Presets, BankPreset{Name: text(r[:20]), Program: word(r, 20), Bank: word(r, 22), Zones: presetZones[first:end]})
	})
	records(b.tables["inst"], instrumentSize, func(r, next []byte) {
		first, end := part(word(r, 20), word(next, 20), len(instrumentZones))
		bank.Instruments = append(bank.Instruments, Instrument{Name: text(r[:20]), Zones: instrumentZones[first:end]})
	})
	records(b.tables["shdr"], sampleSize, func(r, _ []byte) { bank.Samples = append(bank.Samples, sampleOf(r)) })
	return bank, nil
}

// instrument returns the instrument with an index, if there is one.
func (b *Bank) instrument(index int) (i Instrument, ok bool) {
	if index < 0 || index >= len(b.Instruments) {
		return i, false
	}
	return b.Instruments[index], true
}

func sampleOf(r []byte) Sample {
	long := func(at int) int64 { return int64(binary.LittleEndian.Uint32(r[at:])) }
	return Sample{
		Name: text(r[:20]), Start: long(20), End: long(24), Loop: long(28), LoopEnd: long(32),
		Rate: int(min(long(36), 1<<30)), Root: int(r[40]), Correction: int(int8(r[41])), Type: word(r, 44),
	}
}

// fullZones reads bags with their generators and modulators.
func fullZones(bags, generators, modulators []byte, target int) ([]Zone, error) {
	var all []Zone
	most := 0
	records(bags, bagSize, func(r, next []byte) {
		z := Zone{Target: -1}
		first, end := part(word(r, 0), word(next, 0), len(generators)/generatorSize)
		for g := generators[first*generatorSize : end*generatorSize]; len(g) > 0; g = g[generatorSize:] {
			if z.Generators = append(z.Generators, Generator{word(g, 0), int16(word(g, 2))}); word(g, 0) == target {
				z.Target = word(g, 2)
			}
		}
		first, end = part(word(r, 2), word(next, 2), len(modulators)/modulatorSize)
		if most = max(most, end-first); most > maxModulators {
			return
		}
		for m := modulators[first*modulatorSize : end*modulatorSize]; len(m) > 0; m = m[modulatorSize:] {
			z.Modulators = append(z.Modulators, Modulator{
				Source: uint16(word(m, 0)), Target: uint16(word(m, 2)), Amount: int16(word(m, 4)), Scale: uint16(word(m, 6)), Transform: uint16(word(m, 8)),
			})
		}
		all = append(all, z)
	})
	if most > maxModulators {
		return nil, fault.New(fault.Limit, "a zone of the SoundFont has %d modulators", most).WithHint("at most %d are supported", maxModulators)
	}
	return all, nil
}

// Check reports why a sample cannot be read.
func (b *Bank) Check(s Sample) error {
	switch {
	case s.Type&inROM != 0:
		return fault.New(fault.InvalidParams, "sample %q is in the memory of a sound card", s.Name).WithHint("use a SoundFont that contains its samples")
	case s.Type&compressed != 0:
		return fault.New(fault.InvalidParams, "sample %q is compressed (SoundFont 3)", s.Name).WithHint("convert the file to SoundFont 2 (.sf2), for example with Polyphone")
	case s.End < s.Start || s.End > b.points:
		return broken("sample %q is from %d to %d, and the file has %d", s.Name, s.Start, s.End, b.points)
	}
	return nil
}

// Points reads the points of a sample, at full scale from -1 to 1, with 24 bits where
// the file has them.
func (b *Bank) Points(s Sample) ([]float32, error) {
	if err := b.Check(s); err != nil {
		return nil, err
	}
	out := make([]float32, s.End-s.Start)
	raw := make([]byte, 2*len(out))
	if n, err := b.data.ReadAt(raw, b.high.at+2*s.Start); n < len(raw) {
		return nil, fault.Wrap(fault.InvalidParams, err, "read sample %q", s.Name)
	}
	for i := range out {
		out[i] = float32(int16(binary.LittleEndian.Uint16(raw[2*i:]))) / (1 << 15)
	}
	return out, b.addLow(out, s)
}

// addLow adds the lower 8 bits of a sample.
func (b *Bank) addLow(out []float32, s Sample) error {
	if b.low.length == 0 {
		return nil
	}
	raw := make([]byte, len(out))
	if n, err := b.data.ReadAt(raw, b.low.at+s.Start); n < len(raw) {
		return fault.Wrap(fault.InvalidParams, err, "read sample %q", s.Name)
	}
	for i, low := range raw {
		out[i] += float32(low) / (1 << 23)
	}
	return nil
}

// Bits is the resolution of the samples: 16 or 24.
func (b *Bank) Bits() int {
	if b.low.length > 0 {
		return 24
	}
	return 16
}
