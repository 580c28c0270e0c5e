package redact

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRedact(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		``:                        `{}`,
		`{"a":1,"b":[true,null]}`: `{"a":1,"b":[true,null]}`,
		`{"password":"x","n":12345678901234567890}`: `{"n":12345678901234567890,"password":"[redacted]"}`,
		`{"auth":{"X-Api-Key":"k","user":"u"}}`:     `{"auth":{"X-Api-Key":"[redacted]","user":"u"}}`,
		`[{"client_secret":["a"]}]`:                 `[{"client_secret":"[redacted]"}]`,
		`{"max_tokens":500,"token":"t"}`:            `{"max_tokens":500,"token":"[redacted]"}`,
		`{"html":"<b>"}`:                            `{"html":"<b>"}`,
		`{broken`:                                   `(7 bytes, not JSON)`,
	} {
		if got := JSON([]byte(args)); got != want {
			t.Errorf("JSON(%s) = %s, want %s", args, got, want)
		}
	}
}

func TestRedactedArgumentsAreShort(t *testing.T) {
	t.Parallel()
	if got := JSON([]byte(`{"a":"` + strings.Repeat("é", 300) + `"}`)); len(got) > 300 || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	if got := JSON([]byte(`[` + strings.Repeat(`"abcdefgh",`, 2000) + `1]`)); len(got) > 2100 {
		t.Errorf("%d bytes", len(got))
	}
	if got := JSON([]byte(`"` + strings.Repeat("x", 100_000) + `"`)); got != "(100002 bytes)" {
		t.Error(got)
	}
}
