package config_test

import (
	"os"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/configtest"
)

func TestSets(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[sets.a]\ntools = [\"fs.*\"]":                                               "",
		"[sets.a]\nmenu = \"code\"":                                                  "it has no tools",
		"[sets.A]\ntools = [\"*\"]":                                                  "part of its address",
		"[sets.a]\ntools = [\"*\"]\nmenu = \"all\"":                                  "menu",
		"[sets.research]\ntools = [\"*\"]\n[keys.k]\nenv = \"K\"\nset = \"reserch\"": "did you mean research?",
		"[sets.a]\ntools = [\"*\"]\n[roles.r]\nscopes = [\"mcp\"]\nset = \"a\"":      "",
		"[roles.r]\nscopes = [\"mcp\"]\nset = \"b\"":                                 "roles.r",
	} {
		_, err := config.Load(config.Sources{File: configtest.WriteFile(t, text), Env: config.Environment{"HOME": t.TempDir(), "K": "key"}})
		if got := fault.HintOf(err); err == nil != (want == "") || err != nil && !strings.Contains(err.Error()+got, want) {
			t.Errorf("%s: %v, %s", text, err, got)
		}
	}
}

func TestAddSet(t *testing.T) {
	t.Parallel()
	sources := config.Sources{File: configtest.WriteFile(t, "# mine\n[sets.old]\ntools = [\"a.*\"]\n"), Env: config.Environment{"HOME": t.TempDir()}}
	set := config.Set{Tools: []string{"fs.read_*"}, Menu: "direct"}
	for name, ok := range map[string]bool{"new": true, "old": false, "No": false} {
		if _, err := config.AddSet(sources, name, set, false); (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := config.AddSet(sources, "old", set, true); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(sources.File)
	if err != nil || !strings.HasPrefix(string(text), "# mine\n") || strings.Contains(string(text), `"a.*"`) || strings.Count(string(text), `tools = ["fs.read_*"]`)+strings.Count(string(text), `tools = ['fs.read_*']`) != 2 {
		t.Errorf("%s, %v", text, err)
	}
}
