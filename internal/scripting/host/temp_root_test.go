package host_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/scripting/host"
)

// TestTempRootsOfEndedProcesses checks that what a killed process left is removed, and
// what a living one has is not.
func TestTempRootsOfEndedProcesses(t *testing.T) {
	t.Parallel()
	parent := filepath.Join(t.TempDir(), "temp")
	living, err := host.OpenTempRoot(t.Context(), parent)
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(living.Dir(), "kept")
	left := filepath.Join(parent, "process-1", "luanette-2", "left.wav")
	for _, path := range []string{kept, left} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(parent, "process-1.lock"), nil, 0o600); err != nil { // nobody holds it
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 { // several start at once
		all.Go(func() {
			root, err := host.OpenTempRoot(t.Context(), parent)
			if err != nil {
				t.Error(err)
				return
			}
			if err := root.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("a file of a living process is gone: %v", err)
	}
	if err := living.Close(); err != nil {
		t.Error(err)
	}
	names, err := filepath.Glob(filepath.Join(parent, "process-*"))
	if err != nil || len(names) > 0 {
		t.Errorf("left: %q, %v", names, err)
	}
}
