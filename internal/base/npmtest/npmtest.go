// Package npmtest finds the npm packages that tests use: real servers and clients, pinned
// in test/servers and installed by `make servers`.
package npmtest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// Serve starts a script and returns the first line that it prints. It ends with the test.
func Serve(t testing.TB, script string, files ...string) string {
	t.Helper()
	line, wait, err := Start(t.Context(), Modules(t), t.TempDir(), script, files...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wait)
	return line
}

// Start starts a script in a folder, in which it finds the packages of modules and these
// further files, and returns the first line that it prints. It ends with ctx, and wait
// returns then.
func Start(ctx context.Context, modules, folder, script string, files ...string) (line string, wait func(), err error) {
	if err := os.Symlink(modules, filepath.Join(folder, "node_modules")); err != nil {
		return "", nil, err
	}
	for _, file := range append(files, script) {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", nil, err
		}
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(file)), text, 0o600); err != nil {
			return "", nil, err
		}
	}
	program := exec.CommandContext(ctx, "node", filepath.Base(script))
	program.Dir = folder
	var problems bytes.Buffer
	program.Stderr = &problems
	out, err := program.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := program.Start(); err != nil {
		return "", nil, err
	}
	if line, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		_ = program.Wait()
		return "", nil, fmt.Errorf("%s ended (`make servers` installs the npm packages that it needs):\n%s", script, problems.String())
	}
	return strings.TrimSpace(line), func() { _ = program.Wait() }, nil // it is killed when ctx ends
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
