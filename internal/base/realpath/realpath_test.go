package realpath_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/luanette/luanette/internal/base/realpath"
)

func TestOf(t *testing.T) {
	t.Parallel()
	folder := realpath.Of(t.TempDir()) // itself behind a link on some systems
	file, link := filepath.Join(folder, "file"), filepath.Join(folder, "link")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(folder, "missing")
	for path, want := range map[string]string{
		link: file, filepath.Join(folder, ".", "x", "..", "file"): file, missing: missing, "": "",
	} {
		if got := realpath.Of(path); got != want {
			t.Errorf("Of(%q) = %q, want %q", path, got, want)
		}
	}
}
