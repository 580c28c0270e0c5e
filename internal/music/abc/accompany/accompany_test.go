package accompany_test

import (
	"slices"
	"testing"

	"github.com/luanette/luanette/internal/music/abc/accompany"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text  string
		kind  accompany.Kind
		bass  int
		notes []int
	}{
		{"C", accompany.Known, 36, []int{48, 52, 55}},
		{"F#m7", accompany.Known, 42, []int{54, 57, 61, 64}},
		{"B♭", accompany.Known, 46, []int{58, 62, 65}},
		{"G/B", accompany.Known, 47, []int{67, 59, 62}},
		{"Am/G", accompany.Known, 43, []int{57, 60, 64}},
		{"C(m)", accompany.Known, 36, []int{48, 51, 55}},
		{"Am;1", accompany.Known, 45, []int{57, 60, 64}},
		{"d", accompany.Known, 38, nil},
		{"Cown", accompany.Known, 36, []int{48, 53}},
		{"Cfoo", accompany.Unknown, 36, []int{48, 52, 55}},
		{"C/?", accompany.Known, 36, []int{48, 52, 55}},
		{"N.C.", accompany.Silence, 0, nil},
		{"(NC)", accompany.Silence, 0, nil},
		{"slowly", accompany.Text, 0, nil},
		{"é", accompany.Text, 0, nil},
		{"", accompany.Text, 0, nil},
		{" ", accompany.Text, 0, nil},
	} {
		c, kind := accompany.Parse(test.text, map[string][]int{"own": {0, 5}})
		if kind != test.kind || c.Bass != test.bass || !slices.Equal(c.Notes, test.notes) {
			t.Errorf("%q: got %+v, %d", test.text, c, kind)
		}
	}
}

func TestParsePattern(t *testing.T) {
	t.Parallel()
	p, ok := accompany.ParsePattern("fz2c", accompany.ChordLetters)
	want := []accompany.Stroke{{Letter: 'f', At: 0, Length: 1}, {Letter: 'z', At: 1, Length: 2}, {Letter: 'c', At: 3, Length: 1}}
	if !ok || p.Total != 4 || !slices.Equal(p.Strokes, want) {
		t.Errorf("got %+v, %t", p, ok)
	}
	for _, text := range []string{"", "x", "f0", "f65", "f99999999999999999999", "2f"} {
		if p, ok := accompany.ParsePattern(text, accompany.ChordLetters); ok {
			t.Errorf("%q: got %+v", text, p)
		}
	}
}
