// Package soundfont reads the description of a SoundFont 2 file: its presets, and
// which sample each plays for which keys. It does not read the samples, which are
// most of the file.
package soundfont

import (
	"cmp"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
)

// DrumBank is the bank of drum kits.
const DrumBank = 128

// Font is the description of a file.
type Font struct {
	Info    Info
	Presets []Preset // by bank and program

	bank *Bank
}

// Info is the file's metadata.
type Info struct {
	Name        string `json:"name"`
	Version     string `json:"version" jsonschema:"of the format, such as 2.1"`
	Author      string `json:"author,omitempty"`
	Product     string `json:"product,omitempty"`
	Copyright   string `json:"copyright,omitempty"`
	Comment     string `json:"comment,omitempty"`
	Presets     int    `json:"preset_count"`
	Instruments int    `json:"instrument_count"`
	Samples     int    `json:"sample_count"`
	SampleBytes int64  `json:"sample_bytes"`
}

// Preset is one selectable sound.
type Preset struct {
	Bank    int    `json:"bank"`
	Program int    `json:"program"`
	Name    string `json:"name"`

	zones []Zone
}

// Region is one sample and when a preset plays it.
type Region struct {
	Instrument   string `json:"instrument"`
	Sample       string `json:"sample"`
	KeyLow       int    `json:"key_low"`
	KeyHigh      int    `json:"key_high"`
	VelocityLow  int    `json:"velocity_low"`
	VelocityHigh int    `json:"velocity_high"`
	RootKey      int    `json:"root_key" jsonschema:"the key at which the sample sounds as it was recorded"`
	SampleRate   int    `json:"sample_rate"`
	Loops        bool   `json:"loops"`
}

// Drum is one key of a drum kit.
type Drum struct {
	Key    int    `json:"key"`
	Name   string `json:"name" jsonschema:"what General MIDI has on that key, or the sample's name"`
	Sample string `json:"sample"`
}

// Kit is a drum kit.
type Kit struct {
	Bank    int    `json:"bank"`
	Program int    `json:"program"`
	Name    string `json:"name"`
	Drums   []Drum `json:"drums"`
}

// placed is what generators say about where a sample is played.
type placed struct {
	keys, velocities span
	root             int // -1: that of the sample
	loops            bool
}

func anywhere() placed { return placed{keys: span{0, 127}, velocities: span{0, 127}, root: -1} }

// in is the place with what a zone says.
func (p placed) in(z Zone) placed {
	for _, g := range z.Generators {
		switch g.Number {
		case genKeys:
			p.keys = spanOf(g.Amount)
		case genVelocities:
			p.velocities = spanOf(g.Amount)
		case genLoop:
			p.loops = g.Amount&1 == 1
		case genRootKey:
			if g.Amount >= 0 && g.Amount <= 127 {
				p.root = int(g.Amount)
			}
		}
	}
	return p
}

// span is a range of MIDI values.
type span struct{ low, high int }

func spanOf(amount int16) span {
	return span{min(int(amount&0xff), 127), min(int(amount>>8&0xff), 127)}
}

// within is the intersection; ok is false if it is empty.
func (s span) within(o span) (both span, ok bool) {
	both = span{max(s.low, o.low), min(s.high, o.high)}
	return both, both.low <= both.high
}

// HasDrums reports whether there is a drum kit.
func (f *Font) HasDrums() bool {
	return slices.ContainsFunc(f.Presets, func(p Preset) bool { return p.Bank == DrumBank })
}

// Preset finds a preset.
func (f *Font) Preset(bank, program int) (Preset, error) {
	for _, p := range f.Presets {
		if p.Bank == bank && p.Program == program {
			return p, nil
		}
	}
	return Preset{}, fault.New(fault.NotFound, "the SoundFont has no preset %d in bank %d", program, bank).
		WithHint("soundfont_inspect lists its presets")
}

// maxRegions is the largest number of regions returned; real presets have dozens.
const maxRegions = 4096

// Regions returns the regions of a preset, by key.
func (f *Font) Regions(p Preset) []Region {
	regions := []Region{}
	global, zones := Split(p.zones)
	shared, parts := anywhere().in(global), map[int][]placed{}
	for _, pz := range zones {
		i, ok := f.bank.instrument(pz.Target)
		if !ok {
			continue
		}
		place := shared.in(pz)
		if parts[pz.Target] == nil {
			parts[pz.Target] = i.places()
		}
		for n, iz := range i.Zones {
			if iz.Target < 0 || iz.Target >= len(f.bank.Samples) {
				continue
			}
			if r, ok := region(place, parts[pz.Target][n], f.bank.Samples[iz.Target]); ok && len(regions) < maxRegions {
				r.Instrument = i.Name
				regions = append(regions, r)
			}
		}
	}
	slices.SortStableFunc(regions, func(a, b Region) int {
		return cmp.Or(cmp.Compare(a.KeyLow, b.KeyLow), cmp.Compare(a.VelocityLow, b.VelocityLow))
	})
	return regions
}

// places are those of the instrument's zones.
func (i Instrument) places() []placed {
	global, _ := Split(i.Zones)
	shared, list := anywhere().in(global), make([]placed, len(i.Zones))
	for n, z := range i.Zones {
		list[n] = shared.in(z)
	}
	return list
}

// region is a sample where both a preset and an instrument play it.
func region(preset, instrument placed, s Sample) (Region, bool) {
	keys, some := preset.keys.within(instrument.keys)
	velocities, any := preset.velocities.within(instrument.velocities)
	if !some || !any {
		return Region{}, false
	}
	r := Region{
		Sample: s.Name, KeyLow: keys.low, KeyHigh: keys.high, VelocityLow: velocities.low, VelocityHigh: velocities.high,
		RootKey: s.Root, SampleRate: s.Rate, Loops: instrument.loops,
	}
	if instrument.root >= 0 {
		r.RootKey = instrument.root
	}
	return r, true
}

// Kits returns every drum kit with the samples of its keys.
func (f *Font) Kits() []Kit {
	kits := []Kit{}
	for _, p := range f.Presets {
		if p.Bank == DrumBank {
			kits = append(kits, Kit{Bank: p.Bank, Program: p.Program, Name: p.Name, Drums: drums(f.Regions(p))})
		}
	}
	return kits
}

// drums returns the first sample of every key that has one.
func drums(regions []Region) []Drum {
	var byKey [128]*Region
	for i := range regions {
		for key := regions[i].KeyLow; key <= regions[i].KeyHigh; key++ {
			if byKey[key] == nil {
				byKey[key] = &regions[i]
			}
		}
	}
	list := []Drum{}
	for key, r := range byKey {
		if r == nil {
			continue
		}
		d := Drum{Key: key, Name: r.Sample, Sample: r.Sample}
		if key >= firstDrum && key < firstDrum+len(drumNames) {
			d.Name = drumNames[key-firstDrum]
		}
		list = append(list, d)
	}
	return list
}

// firstDrum is the key of the first of drumNames, the drums of General MIDI.
const firstDrum = 35

var drumNames = [...]string{
	"Acoustic Bass Drum", "Bass Drum 1", "Side Stick", "Acoustic Snare", "Hand Clap", "Electric Snare",
	"Low Floor Tom", "Closed Hi-Hat", "High Floor Tom", "Pedal Hi-Hat", "Low Tom", "Open Hi-Hat",
	"Low-Mid Tom", "Hi-Mid Tom", "Crash Cymbal 1", "High Tom", "Ride Cymbal 1", "Chinese Cymbal",
	"Ride Bell", "Tambourine", "Splash Cymbal", "Cowbell", "Crash Cymbal 2", "Vibraslap",
	"Ride Cymbal 2", "High Bongo", "Low Bongo", "Mute High Conga", "Open High Conga", "Low Conga",
	"High Timbale", "Low Timbale", "High Agogo", "Low Agogo", "Cabasa", "Maracas",
	"Short Whistle", "Long Whistle", "Short Guiro", "Long Guiro", "Claves", "High Wood Block",
	"Low Wood Block", "Mute Cuica", "Open Cuica", "Mute Triangle", "Open Triangle",
}
