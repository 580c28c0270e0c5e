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
	bank, err := ReadBank(r, size)
	if err != nil {
		return nil, err
	}
	f := &Font{Info: bank.info, bank: bank}
	for _, p := range bank.Presets {
		f.Presets = append(f.Presets, Preset{Bank: p.Bank, Program: p.Program, Name: p.Name, zones: p.Zones})
	}
	slices.SortStableFunc(f.Presets, func(x, y Preset) int {
		return cmp.Or(cmp.Compare(x.Bank, y.Bank), cmp.Compare(x.Program, y.Program))
	})
	f.Info.Presets, f.Info.Instruments, f.Info.Samples = len(bank.Presets), len(bank.Instruments), len(bank.Samples)
	return f, nil
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

// reader is what is read of a file: its tables, and where its samples are.
type reader struct {
	info   Info
	tables map[string][]byte // of the pdta list
	size   int64             // of all tables

	samples, lowBytes chunkAt
}

// read reads the file's lists.
func (b *reader) read(r io.ReaderAt, size int64) error {
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
func (b *reader) list(r io.ReaderAt, kind string, at, end int64) error {
	return chunks(r, at, end, func(name string, at, length int64) error {
		switch kind {
		case "INFO":
			return b.about(r, name, at, min(length, 64<<10))
		case "sdta":
			switch name {
			case "smpl":
				b.samples, b.info.SampleBytes = chunkAt{at, length}, length
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

func (b *reader) about(r io.ReaderAt, name string, at, length int64) error {
	raw := make([]byte, length)
	if _, err := r.ReadAt(raw, at); err != nil {
		return broken("it is truncated")
	}
	i := &b.info
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

// complete checks that no table is missing.
func (b *reader) complete() error {
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

// records visits a table's records except the last, each with the one after it: the last
// only marks the end of the one before it.
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
