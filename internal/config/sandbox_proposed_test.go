package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAddedServersGetASandbox adds servers, and looks at what is written.
func TestAddedServersGetASandbox(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	notes := filepath.Join(home, "notes")
	if err := os.Mkdir(notes, 0o755); err != nil {
		t.Fatal(err)
	}
	files := Upstream{Command: "npx", Args: []string{"server-filesystem", notes}}
	withLevel := func(u Upstream, level string) Upstream { u.Sandbox = level; return u }
	for name, c := range map[string]struct {
		before string // the file
		added  NewUpstream
		level  string
		write  []string
	}{
		"new":                        {"", NewUpstream{Entry: files, Propose: true}, "open", []string{notes}},
		"chosen":                     {"", NewUpstream{Entry: withLevel(files, "off"), Propose: true}, "off", nil},
		"chosen as it is by default": {"", NewUpstream{Entry: withLevel(files, "open"), Propose: true}, "open", []string{notes}},
		"brought back":               {"", NewUpstream{Entry: files}, "", nil},
		"by default":                 {"[sandbox]\nlevel = \"strict\"\n", NewUpstream{Entry: files, Propose: true}, "", []string{notes}},
		"off by default":             {"[sandbox]\nlevel = \"off\"\n", NewUpstream{Entry: files, Propose: true}, "", nil},
		"of a container":             {"", NewUpstream{Entry: Upstream{Command: "docker", Args: []string{"run", "image"}}, Propose: true}, "off", nil},
		"at a URL":                   {"", NewUpstream{Entry: Upstream{URL: "https://example.org/mcp"}, Propose: true}, "", nil},
	} {
		sources := Sources{File: filepath.Join(t.TempDir(), "luanette.toml"), Env: Environment{"HOME": home}}
		if err := os.WriteFile(sources.File, []byte(c.before), 0o600); err != nil {
			t.Fatal(err)
		}
		c.added.Name = "x"
		if _, err := AddUpstream(t.Context(), sources, c.added); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		loaded, err := Load(sources)
		if err != nil {
			t.Fatal(err)
		}
		if got := loaded.Upstreams["x"]; got.Sandbox != c.level || !slices.Equal(got.Write, c.write) {
			t.Errorf("%s: %q %v", name, got.Sandbox, got.Write)
		}
		said := strings.Join(SandboxNotes(sources, "x"), "\n")
		if strings.Contains(said, "x runs in a sandbox") != (c.level == "open") {
			t.Errorf("%s: %q", name, said)
		}
	}
}

func TestSandboxOfACommand(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "luanette.toml")
	if err := os.WriteFile(file, []byte("[tools.x]\ncommand = [\"x\"]\nsandbox = \"strict\"\nread = [\"~/texts\"]\nwrite = [\"out\"]\nnetwork = [\"example.org:443\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := Environment{"HOME": "/home/ada"}
	loaded, err := Load(Sources{File: file, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	spec, _, err := loaded.commandSpec(env)
	if err != nil {
		t.Fatal(err)
	}
	p := spec.API.Commands["x"].Sandbox
	if p.Name != "commands.x" || p.Level != "strict" || !slices.Equal(p.Read, []string{"/home/ada/texts"}) ||
		!slices.Equal(p.Write, []string{filepath.Join(filepath.Dir(file), "out")}) || !slices.Equal(p.Network, []string{"example.org:443"}) {
		t.Errorf("%+v", p)
	}
	if err := os.WriteFile(file, []byte("[tools.x]\ncommand = [\"x\"]\nsandbox = \"loose\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(Sources{File: file}); err == nil || !strings.Contains(err.Error(), `no sandbox level "loose"`) {
		t.Errorf("got %v", err)
	}
}
