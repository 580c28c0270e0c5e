// Package processes tests what only processes show: servers that are killed, frozen or
// restarted while they work.
package processes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/programtest"
	"github.com/luanette/luanette/internal/scripting/js/jstest"
)

// TestMain builds the program, which programtest starts.
func TestMain(m *testing.M) {
	clocktest.SetParallel()
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	folder, err := os.MkdirTemp("", "luanette-processes-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	// Without debugging information it is linked in half the time.
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", filepath.Join(folder, "luanette"), "../../cmd/luanette")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build the program: %w\n%s", err, out)
	}
	path := folder + string(os.PathListSeparator) + os.Getenv("PATH")
	if err := errors.Join(os.Setenv("PATH", path), os.Setenv(programtest.ScriptsCache, jstest.Cache())); err != nil {
		return 0, err
	}
	return m.Run(), errors.Join(readSources("../../cmd"), readSources("../../internal"), readSources("../../lua"))
}

// readSources reads the names of all sources: `go test` repeats the result of an earlier run
// only while nothing has changed that the tests have read.
func readSources(folder string) error {
	return filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == "node_modules" {
			return fs.SkipDir
		}
		return err
	})
}
