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
)

// TestProbe connects to a real server, to one that fails and to one that never answers.
func TestProbe(t *testing.T) {
	t.Parallel()
	loaded, err := config.Load(config.Sources{Flags: map[string]string{"data": t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	memory := filepath.Join(npmtest.Folder(t), ".bin", "mcp-server-memory")
	prober := Prober{Config: loaded, Version: "test", Log: slog.New(slog.DiscardHandler), Env: config.Environment{"PATH": os.Getenv("PATH")}}
	for name, c := range map[string]struct {
		spec    upstream.Spec
		timeout time.Duration
		works   bool
		problem string
	}{
		"memory": {upstream.Spec{Settings: upstream.Settings{Command: "node", Args: []string{memory}, Start: upstream.Lazy}}, time.Minute, true, ""},
		"broken": {upstream.Spec{Settings: upstream.Settings{Command: "sh", Args: []string{"-c", "echo no password >&2; exit 1"}}}, time.Minute, false, "no password"},
		"silent": {upstream.Spec{Settings: upstream.Settings{Command: "sleep", Args: []string{"60"}}}, time.Millisecond, false, "no answer within 1ms"},
	} {
		c.spec.Name, c.spec.Trusted = name, true
		probe, err := prober.Probe(t.Context(), c.spec, c.timeout)
		if err != nil || probe.Works() != c.works || !strings.Contains(probe.Error, c.problem) {
			t.Errorf("%s: %+v %v", name, probe, err)
		}
		if c.works && (probe.Tools < 5 || probe.Tokens < 1000) {
			t.Errorf("%s: %d tools, %d tokens", name, probe.Tools, probe.Tokens)
		}
	}
}
