//go:build unix

package upstream_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstream/upstreamtest"
)

// TestPackageRunnerMayCleanUp ends a package runner that has not answered yet and needs longer to
// clean up than a server has to end.
func TestPackageRunnerMayCleanUp(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	cleaned := filepath.Join(folder, "cleaned")
	script := "#!/bin/sh\ntrap 'read none < pipe; touch cleaned; exit 1' TERM\necho installing >&2\nwhile :; do sleep 0.05; done\n"
	if err := os.WriteFile(filepath.Join(folder, "npx"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(folder, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	o := options(t)
	o.StopTimeout = 20 * time.Millisecond
	upstreamtest.Open(t, upstreamtest.Server{Options: o, Spec: upstream.Spec{Name: "test", Settings: upstream.Settings{
		Command: filepath.Join(folder, "npx"), Args: []string{"server"}, Cwd: folder, StartTimeout: duration.Duration(300 * time.Millisecond),
	}}})
	end, err := os.OpenFile(pipe, os.O_WRONLY, 0) // returns when the clean-up waits: after the time that a server has
	if err != nil {
		t.Fatal(err)
	}
	if err := end.Close(); err != nil {
		t.Fatal(err)
	}
	clocktest.Await(t, func() bool { _, err := os.Stat(cleaned); return err == nil })
}
