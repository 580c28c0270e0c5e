package script

import (
	"strings"
	"testing"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"

	"github.com/luanette/luanette/internal/core/tool"
)

func TestSpanAttributes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 300) // a cut inside a letter would lose the whole trace
	got := map[attribute.Key]attribute.Value{}
	for _, a := range spanAttributes(t.Context(), Request{
		Source: "return 1", Caller: &tool.Caller{ID: "ada"},
		Params: []byte(`{"style":"jazz","bars":8,"level":-1.5,"loud":true,"api_key":"k","login":{"password":"p","user":"u"},"none":null,"long":"x` + long + `"}`),
	}) {
		got[a.Key] = a.Value
	}
	for key, want := range map[attribute.Key]any{
		"script.name": "script", "script.creator": "ada",
		"script.params.style": "jazz", "script.params.bars": int64(8), "script.params.level": -1.5, "script.params.loud": true,
		"script.params.api_key": "[redacted]", "script.params.login.password": "[redacted]", "script.params.login.user": "u", "script.params.none": "null",
	} {
		if got[key].AsInterface() != want {
			t.Errorf("%s is %v, want %v", key, got[key].AsInterface(), want)
		}
	}
	if text := got["script.params.long"].AsString(); !utf8.ValidString(text) || len(text) > 230 {
		t.Errorf("a long param is %q", text)
	}
	if len(got["script.hash"].AsString()) != 64 {
		t.Errorf("script.hash is %v", got["script.hash"])
	}
}
