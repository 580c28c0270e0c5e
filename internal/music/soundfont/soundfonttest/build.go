package soundfonttest

import "github.com/luanette/luanette/internal/music/soundfont"

// Spec describes a font with one sample, one instrument and one preset: program 0 of
// bank 0.
type Spec struct {
	Points     []int32 // of 24 bits
	Deep       bool    // whether the file has the lower 8 bits
	Loop, End  uint32  // of the loop
	Type       uint16  // of the sample; 0 means mono
	From, To   uint32  // of the sample; 0 means all of Points
	Instrument []Zone  // the last one plays the sample
	Preset     []Zone  // the last one plays the instrument; none means one that changes nothing
}

// Zone is what a zone changes.
type Zone struct {
	Generators []soundfont.Generator
	Modulators []soundfont.Modulator
}

// File is the file. At key 60 and a sample rate of 44100 the sample sounds as it is.
func (s Spec) File() []byte {
	high, low := make([]int16, 0, len(s.Points)+46), make([]byte, 0, len(s.Points)+46)
	for _, p := range s.Points {
		high, low = append(high, int16(p>>8)), append(low, byte(p))
	}
	high, low = append(high, make([]int16, 46)...), append(low, make([]byte, 46)...)
	if s.To == 0 {
		s.To = uint32(len(s.Points))
	}
	f := font{}
	r := name("wave")
	for _, n := range []uint32{s.From, s.To, s.Loop, s.End, 44100} {
		r = le.AppendUint32(r, n)
	}
	r = append(r, 60, 0)
	f.shdr = le.AppendUint16(le.AppendUint16(r, 0), max(1, s.Type))
	f.inst = append(name("Wave"), 0, 0)
	f.ibag, f.igen, f.imod = bags(s.Instrument, 53)
	if len(s.Preset) == 0 {
		s.Preset = []Zone{{}}
	}
	f.phdr = append(name("Wave"), make([]byte, 18)...)
	f.pbag, f.pgen, f.pmod = bags(s.Preset, 41)
	if !s.Deep {
		low = nil
	}
	return f.file(high, low...)
}

// bags writes zones. The last one gets the target 0, by a generator.
func bags(zones []Zone, target uint16) (bag, gen, mod []byte) {
	for i, z := range zones {
		bag = le.AppendUint16(le.AppendUint16(bag, uint16(len(gen)/4)), uint16(len(mod)/10))
		for _, g := range z.Generators {
			gen = le.AppendUint16(le.AppendUint16(gen, uint16(g.Number)), uint16(g.Amount))
		}
		if i == len(zones)-1 {
			gen = le.AppendUint16(le.AppendUint16(gen, target), 0)
		}
		for _, m := range z.Modulators {
			for _, word := range []uint16{m.Source, m.Target, uint16(m.Amount), m.Scale, m.Transform} {
				mod = le.AppendUint16(mod, word)
			}
		}
	}
	return bag, gen, mod
}
