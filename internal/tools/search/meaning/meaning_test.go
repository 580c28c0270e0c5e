package meaning

import "testing"

// of is the vector of some words.
func of(t *testing.T, texts ...string) *Vector {
	t.Helper()
	var v Vector
	for _, word := range texts {
		row, known := Words.Find(word)
		if !known {
			t.Fatalf("%q is not in the table", word)
		}
		Words.Add(&v, row, 1)
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
		if _, known := Words.Find(word); known {
			t.Errorf("%q is known", word)
		}
	}
}
