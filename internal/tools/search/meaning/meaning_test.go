package meaning

import (
	"testing"
)

// of is the vector of some words.
func of(t *testing.T, texts ...string) *Vector {
	t.Helper()
	var v Vector
	for _, word := range texts {
		row, known := Find(word)
		if !known {
			t.Fatalf("%q is not in the table", word)
		}
		v.Add(row, 1)
	}
	v.Normalize()
	return &v
}

func TestWordsOfTheSameMeaningAreNear(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ word, near, far []string }{
		{[]string{"delete", "file"}, []string{"remove", "document"}, []string{"play", "music"}},
		{[]string{"weather", "tomorrow"}, []string{"forecast"}, []string{"invoice"}},
		{[]string{"song"}, []string{"music"}, []string{"invoice"}},
	} {
		word, near, far := of(t, c.word...), of(t, c.near...), of(t, c.far...)
		if word.Dot(near) < word.Dot(far)+0.2 {
			t.Errorf("%v: %.2f to %v, %.2f to %v", c.word, word.Dot(near), c.near, word.Dot(far), c.far)
		}
	}
}

func TestUnknownWords(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"", "zzzzzz", "über", "\x00"} {
		if _, known := Find(word); known {
			t.Errorf("%q is known", word)
		}
	}
}

// TestTablesAreReadAsWritten checks that all words are found, with vectors as they were to
// less than one part in a hundred of the largest number.
func TestTablesAreReadAsWritten(t *testing.T) {
	t.Parallel()
	vectors := map[string]Vector{"b": {0: 1, 63: -0.5}, "a": {5: 3}, "long word": {1: 0.25, 2: -0.1}}
	raw, err := Encode(vectors)
	if err != nil {
		t.Fatal(err)
	}
	read := open(string(raw))
	for word, want := range vectors {
		row, known := read.find(word)
		var got Vector
		if read.add(&got, row, 1); !known || got[0]-want[0] > 0.01 || want[0]-got[0] > 0.01 || got[63]-want[63] > 0.01 {
			t.Errorf("%s: %v is read as %v", word, want, got)
		}
	}
	if _, err := Encode(map[string]Vector{"zero": {}}); err == nil {
		t.Error("a vector of zeros was written")
	}
	if empty := open(""); empty.count != 0 {
		t.Error("an empty table has words")
	}
}
