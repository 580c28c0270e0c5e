//go:build linux

package client

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/npmtest"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// profilesFolder has the sandboxes of servers of npm, one file each.
const profilesFolder = "../../examples/profiles"

// mostTime is how long a server may take to start, or for a call, on a busy machine.
const mostTime = 5 * time.Minute

// TestServersWorkInTheirProfiles starts servers of npm in the strict sandbox that a trace
// has found for them, and makes the calls of the trace. UPDATE=1 traces them again and
// writes the files.
func TestServersWorkInTheirProfiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(profilesFolder + "/*.toml")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d profiles, %v", len(files), err)
	}
	npmtest.Modules(t)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".toml"), func(t *testing.T) {
			t.Parallel()
			s := openProfile(t, file)
			if os.Getenv("UPDATE") != "" {
				s.update(t)
				s = openProfile(t, file)
			}
			s.use(t)
		})
	}
}

// profiled is a server with its profile.
type profiled struct {
	file   string
	prober Prober
	spec   upstream.Spec
	calls  TraceOptions
}

func openProfile(t *testing.T, file string) profiled {
	t.Helper()
	home := homeFolder(t)
	env := config.Environment{"HOME": home, "PATH": os.Getenv("PATH"), "SERVERS": npmtest.Modules(t)}
	loaded, err := config.Load(config.Sources{File: file, Env: env, Flags: map[string]string{"data": filepath.Join(home, "data")}})
	if err != nil {
		t.Fatal(err)
	}
	specs, _, err := loaded.UpstreamSpecs(env)
	if err != nil || len(specs) != 1 {
		t.Fatalf("%d upstreams, %v", len(specs), err)
	}
	if missing := loaded.Launcher(env).Support().Missing(); len(missing) > 0 {
		t.Skipf("the sandbox is incomplete here: %v", missing)
	}
	s := profiled{file: file, spec: specs[0], calls: TraceOptions{Timeout: mostTime}}
	s.prober = Prober{Config: loaded, Env: env, Version: "test", Log: slog.New(slog.DiscardHandler)}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if words, is := strings.CutPrefix(strings.TrimSpace(line), "# call: "); is {
			call, err := ParseTraceCall(strings.ReplaceAll(words, "${HOME}", home))
			if err != nil {
				t.Fatal(err)
			}
			s.calls.Calls = append(s.calls.Calls, call)
		}
	}
	return s
}

// homeFolder makes a home folder with what the servers work on. It is not in /tmp, of which
// each sandbox has its own.
func homeFolder(t *testing.T) string {
	t.Helper()
	home, err := os.MkdirTemp("/var/tmp", "luanette-profile-") //nolint:usetesting // t.TempDir is in /tmp
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(home); err != nil {
			t.Error(err)
		}
	})
	for name, content := range map[string]string{
		"notes/a.md": "# Hello\n", "project/a.js": "let a = 1\n", "project/eslint.config.mjs": "export default []\n",
		"graph/memory.jsonl": "", "bank/README.md": "", "tasks/README.md": "", "repositories/README.md": "",
	} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return home
}

// use makes the calls in the strict sandbox of the file.
func (s profiled) use(t *testing.T) {
	t.Helper()
	if s.spec.Profile.Level != profile.Strict || len(s.calls.Calls) == 0 {
		t.Fatalf("level %q, %d calls", s.spec.Profile.Level, len(s.calls.Calls))
	}
	var failed []string
	probe, err := s.prober.use(t.Context(), s.spec, mostTime, func(m *upstream.Manager) error {
		failed = s.calls.callAll(t.Context(), m, s.spec.Name)
		return nil
	})
	if err != nil || !probe.Works() {
		t.Fatalf("%+v %v", probe, err)
	}
	for _, problem := range failed {
		t.Error(problem)
	}
}

// update traces the server and writes what was learned behind the start of the file.
func (s profiled) update(t *testing.T) {
	t.Helper()
	traced, err := s.prober.Trace(t.Context(), s.spec, s.calls)
	if err != nil || !traced.Probe.Works() || len(traced.Failed) > 0 {
		t.Fatalf("%+v %v", traced, err)
	}
	text, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	_, learned, _ := strings.Cut(traced.Learned.TOML(), "\n") // the name of the table is there
	start, _, _ := strings.Cut(string(text), "sandbox = ")
	if err := os.WriteFile(s.file, []byte(start+learned), 0o644); err != nil {
		t.Fatal(err)
	}
}
