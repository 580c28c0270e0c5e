package soundfont

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/fault"
)

// maxTables is the largest size of the tables that describe presets; those of the
// largest fonts have a few MiB.
const maxTables = 64 << 20

// Read reads the description of a file of that size.
func Read(r io.ReaderAt, size int64) (*Font, error) {
	b := &builder{font: &Font{}, tables: map[string][]byte{}}
	if err := b.read(r, size); err != nil {
		return nil, err
	}
	return b.build()
}

// chunks visits the chunks between two offsets.
func chunks(r io.ReaderAt, at, end int64, visit func(name string, at, length int64) error) error {
	var head [8]byte
	for at+8 <= end {
		if _, err := r.ReadAt(head[:], at); err != nil {
			return broken("it is truncated")
		}
		length := int64(binary.LittleEndian.Uint32(head[4:]))
		if length > end-at-8 {
			return broken("chunk %q is longer than the chunk that contains it", head[:4])
		}
		if err := visit(string(head[:4]), at+8, length); err != nil {
			return err
		}
		at += 8 + length + length%2
	}
	return nil
}

// builder builds a Font from a file's tables.
type builder struct {
	font   *Font
	tables map[string][]byte // of the pdta list
	size   int64             // of all tables

	samples, lowBytes chunkAt
}

// read reads the file's lists.
func (b *builder) read(r io.ReaderAt, size int64) error {
	var head [12]byte
	if _, err := r.ReadAt(head[:], 0); err != nil || string(head[:4]) != "RIFF" || string(head[8:]) != "sfbk" {
		return broken("it does not begin with RIFF and sfbk")
	}
	return chunks(r, 12, size, func(name string, at, length int64) error {
		if name != "LIST" || length < 4 {
			return nil
		}
		var kind [4]byte
		if _, err := r.ReadAt(kind[:], at); err != nil {
			return broken("it is truncated")
		}
		return b.list(r, string(kind[:]), at+4, at+length)
	})
}

// list reads one of the file's lists, up to end.
func (b *builder) list(r io.ReaderAt, kind string, at, end int64) error {
	return chunks(r, at, end, func(name string, at, length int64) error {
		switch kind {
		case "INFO":
			return b.info(r, name, at, min(length, 64<<10))
		case "sdta":
			switch name {
			case "smpl":
				b.samples, b.font.Info.SampleBytes = chunkAt{at, length}, length
			case "sm24":
				b.lowBytes = chunkAt{at, length}
			}
		case "pdta":
			if b.size += length; b.size > maxTables {
				return fault.New(fault.Limit, "the preset tables of the SoundFont have more than %d bytes", maxTables)
			}
			table := make([]byte, length)
			if _, err := r.ReadAt(table, at); err != nil {
				return broken("it is truncated")
			}
			b.tables[name] = table
		}
		return nil
	})
}

func (b *builder) info(r io.ReaderAt, name string, at, length int64) error {
	raw := make([]byte, length)
	if _, err := r.ReadAt(raw, at); err != nil {
		return broken("it is truncated")
	}
	i := &b.font.Info
	if name == "ifil" && length >= 4 {
		i.Version = fmt.Sprintf("%d.%02d", binary.LittleEndian.Uint16(raw), binary.LittleEndian.Uint16(raw[2:]))
		return nil
	}
	if place := map[string]*string{"INAM": &i.Name, "IENG": &i.Author, "IPRD": &i.Product, "ICOP": &i.Copyright, "ICMT": &i.Comment}[name]; place != nil {
		*place = text(raw)
	}
	return nil
}

// Sizes of the tables' records.
const (
	presetSize     = 38
	instrumentSize = 22
	sampleSize     = 46
	bagSize        = 4
	generatorSize  = 4
)

// Generators that matter here.
const (
	genInstrument = 41
	genKeys       = 43
	genVelocities = 44
	genSample     = 53
	genLoop       = 54
	genRootKey    = 58
)

// build builds the font from its tables. The last record of each table only marks
// the end of the one before it.
func (b *builder) build() (*Font, error) {
	if err := b.complete(); err != nil {
		return nil, err
	}
	f := b.font
	f.presetZones = zones(b.tables["pbag"], b.tables["pgen"], genInstrument)
	f.instrumentZones = zones(b.tables["ibag"], b.tables["igen"], genSample)
	records(b.tables["phdr"], presetSize, func(r, next []byte) {
		p := Preset{Name: text(r[:20]), Program: word(r, 20), Bank: word(r, 22)}
		p.first, p.end = part(word(r, 24), word(next, 24), len(f.presetZones))
		f.Presets = append(f.Presets, p)
	})
	records(b.tables["inst"], instrumentSize, func(r, next []byte) {
		i := instrument{name: text(r[:20])}
		i.first, i.end = part(word(r, 20), word(next, 20), len(f.instrumentZones))
		f.instruments = append(f.instruments, i)
	})
	records(b.tables["shdr"], sampleSize, func(r, _ []byte) {
		f.samples = append(f.samples, sample{
			name: text(r[:20]), rate: int(min(binary.LittleEndian.Uint32(r[36:]), 1<<30)), root: int(r[40]),
		})
	})
	f.inherit()
	slices.SortStableFunc(f.Presets, func(x, y Preset) int {
		return cmp.Or(cmp.Compare(x.Bank, y.Bank), cmp.Compare(x.Program, y.Program))
	})
	f.Info.Presets, f.Info.Instruments, f.Info.Samples = len(f.Presets), len(f.instruments), len(f.samples)
	return f, nil
}

// complete checks that no table is missing.
func (b *builder) complete() error {
	for _, name := range []string{"phdr", "pbag", "pgen", "inst", "ibag", "igen", "shdr"} {
		if b.tables[name] == nil {
			return broken("chunk %s is missing", name)
		}
	}
	for _, name := range []string{"pbag", "ibag"} {
		if !ascending(b.tables[name]) {
			return broken("the zones of %s overlap", name) // each generator would be read once per zone
		}
	}
	return nil
}

// ascending reports whether the zones of a table follow one another.
func ascending(bags []byte) bool {
	ok := true
	records(bags, bagSize, func(r, next []byte) {
		ok = ok && word(r, 0) <= word(next, 0) && word(r, 2) <= word(next, 2)
	})
	return ok
}

// inherit applies a global zone to the other zones.
func (f *Font) inherit() {
	for _, i := range f.instruments {
		share(f.instrumentZones[i.first:i.end])
	}
	for _, p := range f.Presets {
		share(f.presetZones[p.first:p.end])
	}
}

func share(zones []zone) {
	if len(zones) == 0 || zones[0].target >= 0 {
		return
	}
	for i := range zones[1:] {
		z := &zones[i+1]
		if z.keys == everything() {
			z.keys = zones[0].keys
		}
		if z.vels == everything() {
			z.vels = zones[0].vels
		}
		if z.root < 0 {
			z.root = zones[0].root
		}
		z.loops = z.loops || zones[0].loops
	}
}

// records visits a table's records except the last, each with the one after it.
func records(table []byte, size int, visit func(record, next []byte)) {
	for ; len(table) >= 2*size; table = table[size:] {
		visit(table[:size], table[size:2*size])
	}
}

// part is the range from first to end, clamped to count.
func part(first, end, count int) (int, int) {
	first = min(first, count)
	return first, min(max(first, end), count)
}

// zones reads bags and their generators. target is the generator with the index of
// the instrument or sample.
func zones(bags, generators []byte, target int) []zone {
	var all []zone
	count := len(generators) / generatorSize
	records(bags, bagSize, func(r, next []byte) {
		z := zone{target: -1, keys: everything(), vels: everything(), root: -1}
		first, end := part(word(r, 0), word(next, 0), count)
		for g := generators[first*generatorSize : end*generatorSize]; len(g) > 0; g = g[generatorSize:] {
			z.apply(word(g, 0), word(g, 2), target)
		}
		all = append(all, z)
	})
	return all
}

func (z *zone) apply(generator, amount, target int) {
	switch generator {
	case target:
		z.target = amount
	case genKeys:
		z.keys = span{min(amount&0xff, 127), min(amount>>8, 127)}
	case genVelocities:
		z.vels = span{min(amount&0xff, 127), min(amount>>8, 127)}
	case genLoop:
		z.loops = amount&1 == 1
	case genRootKey:
		if amount <= 127 {
			z.root = amount
		}
	}
}

func word(b []byte, at int) int { return int(binary.LittleEndian.Uint16(b[at:])) }

// text returns the text up to the first zero byte, as UTF-8.
func text(raw []byte) string {
	raw, _, _ = bytes.Cut(raw, []byte{0})
	if utf8.Valid(raw) {
		return strings.TrimSpace(string(raw))
	}
	runes := make([]rune, len(raw)) // Latin-1, as in most old files
	for i, c := range raw {
		runes[i] = rune(c)
	}
	return strings.TrimSpace(string(runes))
}

func broken(format string, args ...any) error {
	return fault.New(fault.InvalidParams, "read SoundFont: "+format, args...).WithHint("give a SoundFont 2 file (.sf2)")
}
