package hub

import (
	"encoding/json"
	"testing"
)

// Servers may put any JSON whitespace around the first brace of a result.
func TestPrependAcceptsWhitespace(t *testing.T) {
	t.Parallel()
	members := []byte(`"a":1,`)
	for object, want := range map[string]string{
		`{"b":2}`:          `{"a":1,"b":2}`,
		"\t\r\n {\"b\":2}": `{"a":1,"b":2}`,
		"{\t\"b\":2}":      "{\"a\":1,\t\"b\":2}",
		`{}`:               `{"a":1}`,
		"\t{\t\r\n }":      "{\"a\":1\t\r\n }",
	} {
		if got := prepend(json.RawMessage(object), members); string(got) != want {
			t.Errorf("prepend to %q: %q, want %q", object, got, want)
		}
	}
	if got := prepend(json.RawMessage("\t{}"), nil); string(got) != "\t{}" {
		t.Errorf("without members: %q", got)
	}
}
