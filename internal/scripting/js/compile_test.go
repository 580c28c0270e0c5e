package js

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPrecompile checks that machine code is stored once, that the memory is freed, that
// the next script loads the code, and that damaged code does not stop scripts.
func TestPrecompile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	e, err := NewEngine(Options{CacheDir: folder})
	if err != nil {
		t.Fatal(err)
	}
	e.Precompile()
	e.mu.Lock()
	p := e.prepared
	e.mu.Unlock()
	<-p.ended
	if !e.cached() || e.prepared != nil {
		t.Errorf("stored: %v, still in memory: %v", e.cached(), e.prepared != nil)
	}
	stored, _ := filepath.Glob(filepath.Join(folder, "*", "*"))
	if len(stored) != 1 {
		t.Fatalf("stored files: %q", stored)
	}
	e.Precompile()
	if e.prepared != nil {
		t.Error("compiles again")
	}
	if err := e.Warm(t.Context()); err != nil {
		t.Error(err)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
	content, err := os.ReadFile(stored[0])
	if err == nil {
		content[len(content)/2] ^= 1
		err = os.WriteFile(stored[0], content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if e, err = NewEngine(Options{CacheDir: folder}); err != nil {
		t.Fatal(err)
	}
	if err := e.Warm(t.Context()); err != nil {
		t.Errorf("with damaged code: %v", err)
	}
	if got, err := e.Run(t.Context(), program("6 * 7"), testHost()); err != nil || string(got.Result) != "42" {
		t.Errorf("with damaged code: got %s, %v", got.Result, err)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
