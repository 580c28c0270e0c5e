package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
)

// TestSetTools checks that the settings of tools are changed in place and read back.
func TestSetTools(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "luanette.toml")
	before := "# mine\n[upstreams.files]\ncommand = \"files\" # the server\nexpose = \"all\"\n\n[upstreams.files.env]\nA = \"b\"\n"
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	sources := config.Sources{File: file, Env: config.Environment{"HOME": t.TempDir()}}
	set := func(s upstreamset.ToolSettings) string {
		t.Helper()
		if err := config.SetTools(t.Context(), sources, "files", s); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	got := set(upstreamset.ToolSettings{Disabled: []string{"rm"}, Aliases: map[string]string{"show": "cat"}, Expose: []string{"cat"}})
	want := strings.Replace(before, "expose = \"all\"\n", "expose = [\"cat\"]\n", 1)
	want = strings.Replace(want, "[upstreams.files]\n", "[upstreams.files]\ndisabled_tools = [\"rm\"]\naliases = {show = \"cat\"}\n", 1)
	if got != want {
		t.Errorf("changed to\n%s\nwant\n%s", got, want)
	}
	loaded, err := config.Load(sources)
	if err != nil || loaded.Upstreams["files"].Aliases["show"] != "cat" || loaded.Upstreams["files"].Env["A"] != "b" {
		t.Errorf("read back %+v, %v", loaded.Upstreams["files"], err)
	}
	if got := set(upstreamset.ToolSettings{Expose: []string{"*"}}); !strings.Contains(got, "# the server\nexpose = \"all\"\n") || strings.Contains(got, "aliases") {
		t.Errorf("changed back to\n%s", got)
	}
	for name, s := range map[string]upstreamset.ToolSettings{"other": {}, "files": {Aliases: map[string]string{"not a name": "cat"}}} {
		if err := config.SetTools(t.Context(), sources, name, s); err == nil || fault.HintOf(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
