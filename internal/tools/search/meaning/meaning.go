// Package meaning compares texts by what their words mean, with a table of word vectors in
// the program. bench/search/train makes the table; docs/licences.md names what of.
package meaning

import (
	_ "embed"
	"math"
	"sort"
)

// Dimensions of a vector.
const Dimensions = 64

// Vector is the direction in which a text points: texts that say the same point the same
// way.
type Vector [Dimensions]float32

//go:embed words.bin
var embedded string

// Words is the table of the program. It is read where it lies.
var Words = Open(embedded)

// Table is words in their order, and a row of numbers for each. The file is the number of
// words and their bytes, where each ends, the words, a factor for each, and the rows, all
// in little endian.
type Table struct {
	count                     int
	ends, words, scales, rows string
}

// Open reads a table as bench/search/train writes it.
func Open(s string) Table {
	if len(s) < 8 {
		return Table{}
	}
	t := Table{count: int(number(s, 0))}
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

func (t *Table) word(i int) string {
	start := uint32(0)
	if i > 0 {
		start = number(t.ends, i-1)
	}
	return t.words[start:number(t.ends, i)]
}

// Find returns the row of a word in lower case.
func (t *Table) Find(word string) (row int, known bool) {
	row = sort.Search(t.count, func(i int) bool { return t.word(i) >= word })
	return row, row < t.count && t.word(row) == word
}

// Add adds a word to a text.
func (t *Table) Add(v *Vector, row int, weight float32) {
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
