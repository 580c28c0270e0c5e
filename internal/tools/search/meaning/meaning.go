// Package meaning compares texts by what their words mean, with a table of word vectors in
// the program. bench/search/train makes the table; docs/licences.md names what of.
package meaning

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"
	"sort"
)

// Dimensions of a vector.
const Dimensions = 64

// Vector is the direction in which a text points: texts that say the same point the same
// way.
type Vector [Dimensions]float32

//go:embed words.bin
var embedded string

// words is the table of the program. It is read where it lies.
var words = open(embedded)

// table is words in their order, and a row of numbers for each. The file is the number of
// words and their bytes, where each ends, the words, a factor for each, and the rows, all
// in little endian.
type table struct {
	count                     int
	ends, words, scales, rows string
}

func open(s string) table {
	if len(s) < 8 {
		return table{}
	}
	t := table{count: int(number(s, 0))}
	size := int(number(s, 1))
	t.ends, s = s[8:8+4*t.count], s[8+4*t.count:]
	t.words, s = s[:size], s[size:]
	t.scales, t.rows = s[:4*t.count], s[4*t.count:]
	return t
}

func number(s string, i int) uint32 {
	s = s[4*i : 4*i+4]
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

func (t *table) word(i int) string {
	start := uint32(0)
	if i > 0 {
		start = number(t.ends, i-1)
	}
	return t.words[start:number(t.ends, i)]
}

func (t *table) find(word string) (row int, known bool) {
	row = sort.Search(t.count, func(i int) bool { return t.word(i) >= word })
	return row, row < t.count && t.word(row) == word
}

// Find returns the row of a word in lower case.
func Find(word string) (row int, known bool) { return words.find(word) }

// Add adds a word to a text.
func (v *Vector) Add(row int, weight float32) { words.add(v, row, weight) }

func (t *table) add(v *Vector, row int, weight float32) {
	weight *= math.Float32frombits(number(t.scales, row))
	for i := range v {
		v[i] += weight * float32(int8(t.rows[row*Dimensions+i])) //nolint:gosec // the byte is signed
	}
}

// Normalize gives a vector the length one, unless it is zero.
func (v *Vector) Normalize() {
	if length := float32(math.Sqrt(float64(v.Dot(v)))); length > 0 {
		for i := range v {
			v[i] /= length
		}
	}
}

// Dot is how near two texts are, from -1 to 1, if both vectors have the length one.
func (v *Vector) Dot(other *Vector) float32 {
	var a, b, c, d float32
	for i := 0; i < Dimensions; i += 4 {
		a += v[i] * other[i]
		b += v[i+1] * other[i+1]
		c += v[i+2] * other[i+2]
		d += v[i+3] * other[i+3]
	}
	return a + b + c + d
}

// Encode writes a table.
func Encode(vectors map[string]Vector) ([]byte, error) {
	var ends, all, scales, rows []byte
	for _, word := range slices.Sorted(maps.Keys(vectors)) {
		v, top := vectors[word], float32(0)
		for _, x := range v {
			top = max(top, max(x, -x))
		}
		if top == 0 || word == "" {
			return nil, errors.New("a word without a meaning: " + word)
		}
		all = append(all, word...)
		ends = binary.LittleEndian.AppendUint32(ends, uint32(len(all))) //nolint:gosec // a few hundred KB
		scales = binary.LittleEndian.AppendUint32(scales, math.Float32bits(top/math.MaxInt8))
		for _, x := range v {
			rows = append(rows, byte(int8(math.Round(float64(x/top)*math.MaxInt8))))
		}
	}
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(vectors))) //nolint:gosec // thousands
	head = binary.LittleEndian.AppendUint32(head, uint32(len(all)))     //nolint:gosec // a few hundred KB
	return slices.Concat(head, ends, all, scales, rows), nil
}
