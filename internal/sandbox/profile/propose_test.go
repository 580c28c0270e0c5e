package profile

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestProposedProfiles(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for _, file := range []string{"notes/a.md", ".kube/config", "data/x.db", "tool/server.js", "tool/config.json", "m.json"} {
		path := filepath.Join(home, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	in := func(names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, filepath.Join(home, name))
		}
		return paths
	}
	for name, c := range map[string]struct {
		start       Start
		read, write []string
	}{
		"folder":          {Start{Command: "npx", Args: []string{"-y", "server", filepath.Join(home, "notes")}}, nil, in("notes")},
		"relative folder": {Start{Command: "npx", Args: []string{"server", "notes"}, Dir: home}, nil, in("notes")},
		"flag":            {Start{Command: "x", Args: []string{"--root=" + filepath.Join(home, "notes")}}, nil, in("notes")},
		"database":        {Start{Command: "x", Args: []string{"--db", filepath.Join(home, "data/x.db")}}, nil, in("data")},
		"new file":        {Start{Command: "x", Env: map[string]string{"MEMORY_FILE_PATH": filepath.Join(home, "data/new.jsonl")}}, nil, in("data")},
		"file of home":    {Start{Command: "x", Env: map[string]string{"FILE": filepath.Join(home, "m.json")}}, nil, in("m.json")},
		"credentials":     {Start{Command: "x", Env: map[string]string{"KUBECONFIG": filepath.Join(home, ".kube/config")}}, in(".kube/config"), nil},
		"program":         {Start{Command: "node", Args: []string{filepath.Join(home, "tool/server.js"), "--config", filepath.Join(home, "tool/config.json")}}, nil, nil},
		"words":           {Start{Command: "x", Args: []string{"stdio", "https://example.org/notes", "-v", ""}, Env: map[string]string{"KIND": "notes"}, Dir: home + "/tool"}, nil, nil},
	} {
		c.start.Home = home
		if got := c.start.Propose(); got.Level != Open || !slices.Equal(got.Read, c.read) || !slices.Equal(got.Write, c.write) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, command := range []string{"docker", "/usr/bin/podman", "ssh"} {
		if got := (Start{Command: command, Args: []string{home}}).Propose(); got.Level != Off {
			t.Errorf("%s: %+v", command, got)
		}
	}
}
