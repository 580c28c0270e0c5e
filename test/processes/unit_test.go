package processes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnit checks that the unit of the packages is the one that docs/operate.md shows, and that
// systemd finds nothing wrong with it.
func TestUnit(t *testing.T) {
	t.Parallel()
	unit, err := os.ReadFile("../../packaging/luanette.service")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```ini\n"+string(unit)+"```\n") {
		t.Error("docs/operate.md shows another unit than packaging/luanette.service")
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed (Debian: apt-get install systemd): the unit was not verified")
	}
	program, err := exec.LookPath("luanette")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "luanette.service")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(unit), "/usr/bin/luanette", program)), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", file).CombinedOutput(); err != nil || len(output) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, output)
	}
}
