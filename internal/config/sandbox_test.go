package config

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/luanette/luanette/internal/sandbox/profile"
)

func TestSandboxOfUpstreams(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "luanette.toml")
	text := `[sandbox]
level = "open"
read = ["shared"]
[upstreams.own]
command = "x"
sandbox = "strict"
write = ["notes", "~/w"]
network = ["example.org:443"]
require = true
[upstreams.standard]
command = "x"
[upstreams.far]
url = "https://example.org/mcp"
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := Environment{"HOME": "/home/ada"}
	loaded, err := Load(Sources{File: file, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	specs, _, err := loaded.UpstreamSpecs(env)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]profile.Profile{}
	for _, spec := range specs {
		got[spec.Name] = spec.Profile
	}
	own := got["own"]
	if own.Level != profile.Strict || !own.Require || !slices.Equal(own.Write, []string{filepath.Join(dir, "notes"), "/home/ada/w"}) ||
		!slices.Equal(own.Read, []string{filepath.Join(dir, "shared")}) || !slices.Equal(own.Network, []string{"example.org:443"}) {
		t.Errorf("own settings: %+v", own)
	}
	if standard := got["standard"]; standard.Level != profile.Open || standard.Require || len(standard.Write) != 0 {
		t.Errorf("default: %+v", standard)
	}
	if got["far"].Active() {
		t.Errorf("a URL has a sandbox: %+v", got["far"])
	}
}

func TestSandboxLevelIsChecked(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"[sandbox]\nlevel = \"tight\"", "[upstreams.x]\ncommand = \"x\"\nsandbox = \"docker:\"", "[upstreams.x]\ncommand = \"x\"\nprocesses = -1"} {
		file := filepath.Join(t.TempDir(), "luanette.toml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(Sources{File: file}); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
