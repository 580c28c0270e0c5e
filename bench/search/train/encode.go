package main

import (
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/luanette/luanette/internal/tools/search/meaning"
)

// encode writes a table as package meaning reads it.
func encode(vectors map[string]meaning.Vector) ([]byte, error) {
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
