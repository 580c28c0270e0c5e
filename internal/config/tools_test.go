package config

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/fault"
)

func TestTools(t *testing.T) {
	t.Parallel()
	loaded, err := loadHooks(t, `
[tools.log]
command = ["git", "log", ["-n", "{{n}}"]]
params = { n = { type = "integer" } }
cwd = "repository"
env = { TOKEN = "a-secret-value" }
output = "lines"
`)
	if err != nil {
		t.Fatal(err)
	}
	specs, _, err := loaded.UpstreamSpecs(Environment{"PATH": "/bin", "OTHER": "x"})
	if err != nil || len(specs) != 1 || specs[0].Name != "commands" || specs[0].Validate() != nil {
		t.Fatalf("%+v %v", specs, err)
	}
	got := specs[0].API.Commands["log"]
	if specs[0].API.Kind != api.Command || got.Dir != filepath.Join(filepath.Dir(loaded.File), "repository") || got.Timeout != time.Minute || got.Output != api.OutputLines || string(got.Params) != `{"n":{"type":"integer"}}` {
		t.Errorf("%+v", got)
	}
	if len(got.Env) != 2 || got.Env["PATH"] != "/bin" || len(got.Args) != 3 || !got.Args[2].Optional || got.Description != "Runs git log [-n {{n}}]" {
		t.Errorf("%+v", got)
	}
	var shown strings.Builder
	if err := loaded.Show(&shown); err != nil || strings.Contains(shown.String(), "a-secret-value") || !strings.Contains(shown.String(), "[tools.log]") {
		t.Errorf("show: %v\n%s", err, shown.String())
	}
}

func TestToolsThatAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[tools.a]":                                    "command names no program",
		"[tools.a]\ncommand = [[\"x\"]]":               "command names no program",
		"[tools.a]\ncommand = [\"x\", 5]":              "neither a text nor a list of texts",
		"[tools.a]\ncommand = [\"{{x}}\"]":             "cannot be a template",
		"[tools.a]\ncommand = [\"x\"]\noutput = \"y\"": "is not a choice",
		"[tools.a]\ncommand = [\"x\"]\nmax_kb = -1":    "too small",
		"[tools.\"a.b\"]\ncommand = [\"x\"]":           "cannot be the name of a tool",
		"[tools.a]\ncommand = [\"x\"]\n[upstreams.commands]\nurl = \"http://127.0.0.1\"": "have that namespace",
	} {
		if _, err := loadHooks(t, text); fault.CodeOf(err) != fault.Config || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
