// Package soundfonttest makes a small SoundFont for tests: a sine at every key,
// and a drum kit of two clicks.
package soundfonttest

import (
	"encoding/binary"
	"math"
)

// Rate is the sample rate of the font's samples.
const Rate = 22050

// Root is the key at which the sine sounds as it was recorded: A, 440 Hz.
const Root = 69

// Font is the file. Preset 0 in bank 0, "Sine", plays a looped sine; preset 5,
// "Split", plays it up to key 59 and from 60 only when struck hard; preset 0 in bank
// 128, "Kit", plays a click on keys 36 and 38.
func Font() []byte {
	period := make([]int16, 0, Rate)
	const cycles = 440 // one second, so that the loop has no seam
	for i := range Rate {
		period = append(period, int16(16000*math.Sin(2*math.Pi*cycles*float64(i)/Rate)))
	}
	click := make([]int16, 500)
	for i := range click {
		click[i] = int16(20000 * math.Exp(-float64(i)/80) * math.Sin(float64(i)/2))
	}
	silence := make([]int16, 46) // the format wants it after every sample
	samples := append(append(append(append([]int16{}, period...), silence...), click...), silence...)
	clickAt := uint32(len(period) + len(silence))

	f := font{}
	sine := f.sample("sine", 0, uint32(len(period)), 0, uint32(len(period)), Root)
	tick := f.sample("click", clickAt, clickAt+uint32(len(click)), clickAt, clickAt+uint32(len(click)), 60)
	whole := f.instrument("Sine", zone{sample: sine, keys: keys(0, 127), loops: true})
	split := f.instrument("Split", zone{sample: sine, keys: keys(0, 59), loops: true},
		zone{sample: sine, keys: keys(60, 127), velocities: keys(100, 127), loops: true})
	kit := f.instrument("Kit", zone{sample: tick, keys: keys(36, 36)}, zone{sample: tick, keys: keys(38, 38)})
	f.preset("Sine", 0, 0, whole)
	f.preset("Split", 5, 0, split)
	f.preset("Kit", 0, 128, kit)
	return f.file(samples)
}

func keys(low, high uint16) uint16 { return low | high<<8 }

type zone struct {
	sample           uint16
	keys, velocities uint16
	loops            bool
}

// font is the tables of a file as they grow.
type font struct {
	phdr, pbag, pmod, pgen, inst, ibag, imod, igen, shdr []byte
	instruments, samples                                 uint16
}

var le = binary.LittleEndian

func name(text string) []byte {
	out := make([]byte, 20)
	copy(out, text)
	return out
}

func (f *font) sample(title string, start, end, loop, loopEnd uint32, root byte) uint16 {
	r := name(title)
	for _, n := range []uint32{start, end, loop, loopEnd, Rate} {
		r = le.AppendUint32(r, n)
	}
	r = append(r, root, 0)
	r = le.AppendUint16(le.AppendUint16(r, 0), 1)
	f.shdr = append(f.shdr, r...)
	f.samples++
	return f.samples - 1
}

func (f *font) instrument(title string, zones ...zone) uint16 {
	f.inst = le.AppendUint16(append(f.inst, name(title)...), uint16(len(f.ibag)/4))
	for _, z := range zones {
		f.ibag = le.AppendUint16(le.AppendUint16(f.ibag, uint16(len(f.igen)/4)), 0)
		add := func(generator, amount uint16) {
			f.igen = le.AppendUint16(le.AppendUint16(f.igen, generator), amount)
		}
		add(43, z.keys)
		if z.velocities != 0 {
			add(44, z.velocities)
		}
		if z.loops {
			add(54, 1)
		}
		add(53, z.sample)
	}
	f.instruments++
	return f.instruments - 1
}

func (f *font) preset(title string, program, bank, instrument uint16) {
	r := le.AppendUint16(le.AppendUint16(name(title), program), bank)
	r = le.AppendUint16(r, uint16(len(f.pbag)/4))
	f.phdr = append(f.phdr, append(r, make([]byte, 12)...)...)
	f.pbag = le.AppendUint16(le.AppendUint16(f.pbag, uint16(len(f.pgen)/4)), 0)
	f.pgen = le.AppendUint16(le.AppendUint16(f.pgen, 41), instrument)
}

// file ends every table and writes them all.
func (f *font) file(samples []int16, low ...byte) []byte {
	end := le.AppendUint16(append(name("EOP"), 0, 0, 0, 0), uint16(len(f.pbag)/4))
	f.phdr = append(f.phdr, append(end, make([]byte, 12)...)...)
	f.inst = le.AppendUint16(append(f.inst, name("EOI")...), uint16(len(f.ibag)/4))
	f.pbag = le.AppendUint16(le.AppendUint16(f.pbag, uint16(len(f.pgen)/4)), uint16(len(f.pmod)/10))
	f.ibag = le.AppendUint16(le.AppendUint16(f.ibag, uint16(len(f.igen)/4)), uint16(len(f.imod)/10))
	f.pmod, f.imod = append(f.pmod, make([]byte, 10)...), append(f.imod, make([]byte, 10)...)
	f.pgen, f.igen = append(f.pgen, 0, 0, 0, 0), append(f.igen, 0, 0, 0, 0)
	f.shdr = append(append(f.shdr, name("EOS")...), make([]byte, 26)...)
	var data []byte
	for _, s := range samples {
		data = le.AppendUint16(data, uint16(s))
	}
	waves := chunk("smpl", data)
	if len(low) > 0 {
		waves = join(waves, chunk("sm24", low))
	}
	info := join(chunk("ifil", []byte{2, 0, 1, 0}), chunk("isng", []byte("EMU8000\x00")), chunk("INAM", []byte("Tiny\x00\x00")), chunk("IENG", []byte("A test\x00\x00")))
	return chunk("RIFF", join([]byte("sfbk"), list("INFO", info), list("sdta", waves), list("pdta", join(
		chunk("phdr", f.phdr), chunk("pbag", f.pbag), chunk("pmod", f.pmod), chunk("pgen", f.pgen),
		chunk("inst", f.inst), chunk("ibag", f.ibag), chunk("imod", f.imod), chunk("igen", f.igen), chunk("shdr", f.shdr)))))
}

func chunk(id string, body []byte) []byte {
	return append(le.AppendUint32([]byte(id), uint32(len(body))), body...)
}

func list(kind string, body []byte) []byte { return chunk("LIST", append([]byte(kind), body...)) }

func join(parts ...[]byte) (all []byte) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}
