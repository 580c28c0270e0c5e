package openapi

import (
	"encoding/json"
	"testing"
)

// TestStyles has the examples of the specification, and what it does not define.
func TestStyles(t *testing.T) {
	t.Parallel()
	list, object := `["blue","black"]`, `{"R":100,"G":200}`
	for _, c := range []struct {
		style       style
		value, want string
	}{
		{style{"form", true, false}, list, "color=blue&color=black"},
		{style{"form", false, false}, list, "color=blue%2Cblack"},
		{style{"form", false, true}, list, "color=blue,black"},
		{style{"form", true, false}, object, "R=100&G=200"},
		{style{"form", false, false}, object, "color=R%2C100%2CG%2C200"},
		{style{"form", true, false}, `""`, "color="},
		{style{"form", true, false}, `null`, ""},
		{style{"form", true, true}, `"a/b?c&d é"`, "color=a/b?c%26d+%C3%A9"},
		{style{"spaceDelimited", false, false}, list, "color=blue+black"},
		{style{"pipeDelimited", false, false}, list, "color=blue%7Cblack"},
		{style{"tabDelimited", false, false}, list, "color=blue%09black"},
		{style{"deepObject", true, false}, object, "color%5BR%5D=100&color%5BG%5D=200"},
		{style{"deepObject", true, false}, `{"a":{"b":[1,2]},"c":[{"d":true}]}`, "color%5Ba%5D%5Bb%5D%5B%5D=1&color%5Ba%5D%5Bb%5D%5B%5D=2&color%5Bc%5D%5B0%5D%5Bd%5D=true"},
	} {
		if got := encodePairs(c.style.pairs("color", json.RawMessage(c.value))); got != c.want {
			t.Errorf("%+v of %s in a query is %s, want %s", c.style, c.value, got, c.want)
		}
	}
	for _, c := range []struct {
		style       style
		value, want string
	}{
		{style{"simple", false, false}, list, "blue,black"},
		{style{"simple", false, false}, object, "R,100,G,200"},
		{style{"simple", true, false}, object, "R=100,G=200"},
		{style{"simple", false, false}, `"a/b c"`, "a%2Fb%20c"},
		{style{"simple", false, true}, `"a/b c"`, "a/b%20c"},
		{style{"label", false, false}, list, ".blue,black"},
		{style{"label", true, false}, list, ".blue.black"},
		{style{"label", true, false}, object, ".R=100.G=200"},
		{style{"matrix", false, false}, list, ";color=blue,black"},
		{style{"matrix", true, false}, list, ";color=blue;color=black"},
		{style{"matrix", true, false}, object, ";R=100;G=200"},
		{style{"matrix", false, false}, `5`, ";color=5"},
	} {
		if got := c.style.inPath("color", json.RawMessage(c.value)); got != c.want {
			t.Errorf("%+v of %s in a path is %s, want %s", c.style, c.value, got, c.want)
		}
	}
}
