package rawjson

import (
	"encoding/json"
	"errors"
	"testing"
)

type Embedded struct {
	Scopes []string `json:"scopes"`
}

func TestErrorsOfTypesNameNoTypesOfOurs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"name":5}`:              "name must be a string, not a number",
		`{"ref":{"on":"x"}}`:      "ref.on must be true or false, not a string",
		`{"ref":[1]}`:             "ref must be an object, not an array",
		`{"count":1.5}`:           "count must be a whole number, not 1.5",
		`{"scopes":"all"}`:        "scopes must be an array, not a string",
		`{"share":true}`:          "share must be a number, not true or false",
		`[1]`:                     "it must be an object, not an array",
		`{"texts":{"a":{"b":1}}}`: "texts must be a string, not an object",
	} {
		var into struct {
			Embedded
			Name string `json:"name"`
			Ref  *struct {
				On bool `json:"on"`
			} `json:"ref"`
			Count uint              `json:"count"`
			Share *float64          `json:"share"`
			Texts map[string]string `json:"texts"`
		}
		if err := InWords(json.Unmarshal([]byte(text), &into)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if other := errors.New("other"); !errors.Is(InWords(other), other) || InWords(nil) != nil {
		t.Error("other errors change")
	}
}
