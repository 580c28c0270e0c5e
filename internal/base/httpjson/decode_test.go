package httpjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
)

type inner struct {
	Colour string `json:"colour"`
}

// own decodes itself, and has fields as well.
type own struct {
	Enabled bool `json:"enabled"`
}

func (o *own) UnmarshalJSON(text []byte) error {
	type plain own
	return json.Unmarshal(text, (*plain)(o))
}

type body struct {
	Name   string            `json:"name"`
	Parts  []inner           `json:"parts"`
	ByName map[string]*inner `json:"by_name"`
	Own    own               `json:"own"`
	Free   map[string]any    `json:"free"`
	Raw    json.RawMessage   `json:"raw"`
	Hidden string            `json:"-"`
	inner
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"name":"a","parts":[{"colour":"red"}],"by_name":{"x":{"colour":"blue"}},"own":{"enabled":true},"free":{"any":{"thing":1}},"raw":{"x":[{}]},"colour":"c"}`: "",
		`{"NAME":"a"}`:                   "",
		`{}`:                             "",
		`{"nmae":"a"}`:                   `unknown field "nmae" did you mean "name"?`,
		`{"parts":[{},{"color":"red"}]}`: `unknown field "parts[1].color" did you mean "colour"?`,
		`{"by_name":{"x":{"hue":1}}}`:    `unknown field "by_name.x.hue" the fields are: colour`,
		`{"own":{"enable":true}}`:        `unknown field "own.enable" did you mean "enabled"?`,
		`{"Hidden":"x"}`:                 `unknown field "Hidden" the fields are: name, parts, by_name, own, free, raw, colour`,
		`{"name":1}`:                     `name must be a string, not a number`,
		`{"name":"a"} x`:                 `Invalid JSON body`,
		`[]`:                             `Invalid JSON body: it must be an object, not an array send a JSON object with name, `,
		`"name"`:                         `Invalid JSON body: it must be an object, not a string send`,
		``:                               `Invalid JSON body`,
	} {
		var b body
		err := httpjson.Decode([]byte(text), &b)
		got := ""
		if err != nil {
			got = err.Error() + " " + fault.HintOf(err)
			if fault.CodeOf(err) != fault.InvalidParams {
				t.Errorf("%s: code %s", text, fault.CodeOf(err))
			}
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
