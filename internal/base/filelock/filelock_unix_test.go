//go:build unix

package filelock

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestUnlockBesideAChild checks that a lock is free at once while a program that has inherited the
// file still runs, as one does for a moment after it was forked.
func TestUnlockBesideAChild(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	held, err := Try(path)
	if err != nil || held == nil {
		t.Fatal(held, err)
	}
	child := exec.Command("cat")
	child.ExtraFiles = []*os.File{held.file}
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if err := held.Unlock(); err != nil {
		t.Error(err)
	}
	if again, err := Try(path); again == nil || err != nil {
		t.Errorf("after it was unlocked: %v, %v", again, err)
	}
	_ = stdin.Close()
	if err := child.Wait(); err != nil {
		t.Error(err)
	}
}
