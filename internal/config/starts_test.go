package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/config"
)

func TestStarts(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"in a table": "[starts]\nparallel = 3 # few\ntimeout = \"5m\"\n\n[upstreams.files]\ncommand = \"x\"\nstart_timeout = \"10m\"\n",
		"dotted":     "starts.parallel = 3\nstarts.timeout = \"5m\"\n\n[upstreams.files]\ncommand = \"x\"\nstart_timeout = \"10m\"\n",
	} {
		loaded, err := loadText(t, text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if loaded.Starts.Parallel != 3 || time.Duration(loaded.Starts.Timeout) != 5*time.Minute || len(loaded.Upstreams) != 1 {
			t.Errorf("%s: %+v, %v", name, loaded.Starts, loaded.Upstreams)
		}
		specs, _, err := loaded.UpstreamSpecs(nil)
		if err != nil || len(specs) != 1 || specs[0].StartTimeout != config.Duration(10*time.Minute) {
			t.Errorf("%s: %v, %v", name, specs, err)
		}
		var shown strings.Builder
		if err := loaded.Show(&shown); err != nil || !strings.Contains(shown.String(), "parallel = 3") {
			t.Errorf("%s: shown %v\n%s", name, err, shown.String())
		}
		again, err := loadText(t, shown.String())
		if err != nil || again.Starts != loaded.Starts {
			t.Errorf("%s: what is shown loads as %+v, %v", name, again, err)
		}
	}
	for text, want := range map[string]string{
		"[starts]\nparallel = \"many\"\n":                "luanette.toml:2:12: starts.parallel",
		"[starts]\nparalel = 3\n":                        "luanette.toml:2",
		"[starts]\nparallel = -1\n":                      "too small",
		"[starts]\nparallel = 1\n[upstreams.x]\nurk=1\n": "luanette.toml:4",
	} {
		if _, err := loadText(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func loadText(t *testing.T, text string) (*config.Loaded, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "luanette.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config.Load(config.Sources{File: file})
}
