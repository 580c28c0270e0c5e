//go:build unix

package server

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config"
)

// TestAttackCompiledCode lets other users write to the folder of compiled code, where
// they could put their own.
func TestAttackCompiledCode(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	loaded, err := config.Load(config.Sources{Flags: map[string]string{"data": t.TempDir(), "scripts.cache": folder}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Build(t.Context(), loaded, Options{Version: "test", Stderr: io.Discard, Env: config.Environment{}})
	if fault.CodeOf(err) != fault.Config || !strings.Contains(fault.HintOf(err), "chmod go-w") {
		t.Errorf("error %v, hint %q", err, fault.HintOf(err))
	}
}
