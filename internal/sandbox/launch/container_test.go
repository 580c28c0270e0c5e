package launch

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/luanette/luanette/internal/sandbox/profile"
)

func TestContainerArguments(t *testing.T) {
	t.Parallel()
	p := profile.Profile{Name: "x", Level: "docker:node:22", Read: []string{"/r"}, Write: []string{"/w"}, Limits: profile.Limits{Memory: 1 << 20}}
	program := Program{Path: "server", Args: []string{"server", "--flag"}, Env: []string{"TOKEN=secret", "PATH=/bin"}, Dir: "/w"}
	got := containerArgs(p, program, "node:22", folders{home: "/h"})
	for _, want := range []string{
		"--read-only", "--cap-drop=ALL", "--network=none", "--volume=/r:/r:ro", "--volume=/w:/w", "--volume=/h:/home/sandbox",
		"--env=TOKEN", "--workdir=/w", "--memory=1048576",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing in %v", want, got)
		}
	}
	if slices.Contains(got, "--env=PATH") || slices.Contains(got, "--env=TOKEN=secret") {
		t.Errorf("arguments are %v", got)
	}
	if end := got[len(got)-3:]; !slices.Equal(end, []string{"node:22", "server", "--flag"}) {
		t.Errorf("the end is %v", end)
	}
}

func TestPackageOfAProgram(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	home := filepath.Join(base, "home", "ada")
	for _, file := range []string{"app/node_modules/.bin/server", "app/package.json", "tool/package.json", "tool/dist/index.js", "alone.py", ".nvm/v22/bin/node"} {
		path := filepath.Join(home, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l := &Launcher{Home: home}
	for file, want := range map[string]string{
		"app/node_modules/.bin/server": "app/node_modules", "tool/dist/index.js": "tool", "alone.py": "", ".nvm/v22/bin/node": ".nvm/v22",
	} {
		if want != "" {
			want = filepath.Join(home, want)
		}
		if got := l.packageRoot(filepath.Join(home, file)); got != want {
			t.Errorf("package of %s is %q, not %q", file, got, want)
		}
	}
}
