package owner_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/luanette/luanette/internal/access/owner"
)

// TestSecret checks that processes that start at once agree on one secret, that only its user can
// read it, and that it stays the same.
func TestSecret(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	var all sync.WaitGroup
	made := make(chan string, 16)
	for range cap(made) {
		all.Go(func() {
			own, err := owner.Secret(data)
			if err != nil {
				t.Error(err)
			}
			made <- own.Reveal()
		})
	}
	all.Wait()
	first := <-made
	for range cap(made) - 1 {
		if other := <-made; other != first {
			t.Errorf("one process has %q, another %q", first, other)
		}
	}
	info, err := os.Stat(filepath.Join(data, owner.File))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if files, _ := os.ReadDir(data); len(files) != 1 {
		t.Errorf("the folder has %v", files)
	}
	if err := os.WriteFile(filepath.Join(data, owner.File), []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if own, err := owner.Secret(data); err == nil {
		t.Errorf("an empty file is the secret %q", own.Reveal())
	}
}

func TestCodes(t *testing.T) {
	t.Parallel()
	var codes owner.Codes
	first, second := codes.New(), codes.New()
	if codes.Use("") || codes.Use("x") || !codes.Use(second) || codes.Use(second) || !codes.Use(first) {
		t.Error("a code is good once, and no other is")
	}
	old := codes.New()
	for range 16 {
		codes.New()
	}
	if codes.Use(old) {
		t.Error("old codes stay open")
	}
}
