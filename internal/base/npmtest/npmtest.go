// Package npmtest finds the npm packages that tests use: real servers and clients, pinned
// in test/servers and installed by `make servers`.
package npmtest

import (
	"os"
	"path/filepath"
	"testing"
)

// Folder returns the node_modules folder, which may not exist: the one that
// LUANETTE_TEST_SERVERS names, or that of this repository.
func Folder(t testing.TB) string {
	t.Helper()
	if modules := os.Getenv("LUANETTE_TEST_SERVERS"); modules != "" { //nolint:forbidigo // a helper of tests
		return modules
	}
	return filepath.Join(root(t), "test", "servers", "node_modules")
}

// Modules returns the node_modules folder. It skips the test if the packages are not
// installed.
func Modules(t testing.TB) string {
	t.Helper()
	modules := Folder(t)
	if _, err := os.Stat(modules); err != nil {
		t.Skipf("`make servers` installs the npm packages that this test needs: %v", err)
	}
	return modules
}

// Program returns the path of a program that an npm package installs.
func Program(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(Modules(t), ".bin", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("`make servers` installs %s: %v", name, err)
	}
	return path
}

// Cached returns the path of a file in .cache of this repository, where `make servers` puts
// what is not from npm. It skips the test if it is not there.
func Cached(t testing.TB, file string) string {
	t.Helper()
	path := filepath.Join(root(t), ".cache", file)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("`make servers` installs what this test needs: %v", err)
	}
	return path
}

// root returns the folder of go.mod. Tests run in the folder of their package.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the folder of the test")
		}
		dir = parent
	}
}
