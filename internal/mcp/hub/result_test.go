package hub

import "testing"

// Servers may put any JSON whitespace around the first brace of a result.
func TestPrepend(t *testing.T) {
	t.Parallel()
	for object, want := range map[string]string{
		`{}`:               `{"a":1}`,
		` { } `:            `{"a":1 } `,
		"\t{\t\r\n }":      "{\"a\":1\t\r\n }",
		`{"b":2}`:          `{"a":1,"b":2}`,
		"\n{ \"b\":2}":     `{"a":1, "b":2}`,
		"\t\r\n {\"b\":2}": `{"a":1,"b":2}`,
		"{\t\"b\":2}":      "{\"a\":1,\t\"b\":2}",
	} {
		if got := string(prepend([]byte(object), []byte(`"a":1,`))); got != want {
			t.Errorf("%q became %q, want %q", object, got, want)
		}
	}
	if got := string(prepend([]byte("\t{}"), nil)); got != "\t{}" {
		t.Errorf("without members: %q", got)
	}
}
