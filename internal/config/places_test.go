package config

import (
	"maps"
	"testing"

	"github.com/luanette/luanette/internal/config/toml"
)

func TestWhereUpstreamsAreConfigured(t *testing.T) {
	t.Parallel()
	got := toml.Lines([]byte("listen = \"x\"\nupstreams.a.url = \"u\"\n\n[upstreams]\nb = {url = \"u\"}\n[ upstreams . \"c\" ] # see\nurl = \"u\"\n[upstreams.c.env]\nX = \"1\"\n"), "upstreams")
	if want := map[string]int{"a": 2, "b": 5, "c": 6}; !maps.Equal(got, want) {
		t.Errorf("lines %v, want %v", got, want)
	}
	got = serverLines("{\n  \"mcpServers\": {\n    \"git\": {\"command\": \"x\"},\n    \"web\" : {\n      \"env\": {\"A\": \"b\"}}}}")
	if got["git"] != 3 || got["web"] != 4 {
		t.Errorf("lines %v", got)
	}
}
