package main

import (
	"testing"

	"github.com/luanette/luanette/internal/tools/search/meaning"
)

// TestTablesAreReadAsWritten checks that all words are found, with vectors as they were to
// less than one part in a hundred of the largest number.
func TestTablesAreReadAsWritten(t *testing.T) {
	t.Parallel()
	vectors := map[string]meaning.Vector{"b": {0: 1, 63: -0.5}, "a": {5: 3}, "long word": {1: 0.25, 2: -0.1}}
	raw, err := encode(vectors)
	if err != nil {
		t.Fatal(err)
	}
	read := meaning.Open(string(raw))
	for word, want := range vectors {
		row, known := read.Find(word)
		var got meaning.Vector
		if read.Add(&got, row, 1); !known || got[0]-want[0] > 0.01 || want[0]-got[0] > 0.01 || got[63]-want[63] > 0.01 {
			t.Errorf("%s: %v is read as %v", word, want, got)
		}
	}
	if _, err := encode(map[string]meaning.Vector{"zero": {}}); err == nil {
		t.Error("a vector of zeros was written")
	}
	empty := meaning.Open("")
	if _, known := empty.Find("a"); known {
		t.Error("an empty table has words")
	}
}
