package packages

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/mcp/packages/packagestest"
)

// killed is a start that another process of this test installs, as JSON.
const killed = "LUANETTE_TEST_KILLED"

// kills is how often an installation is killed; LUANETTE_TEST_KILLS says otherwise.
func kills() int {
	if n, err := strconv.Atoi(os.Getenv("LUANETTE_TEST_KILLS")); err == nil {
		return n
	}
	return 4
}

// TestInstallInAnotherProcess is what TestKillsLeaveNothing kills.
func TestInstallInAnotherProcess(t *testing.T) {
	text := os.Getenv(killed)
	if text == "" {
		t.Skip("it is a part of TestKillsLeaveNothing")
	}
	var given struct {
		Folder string
		Start  Start
	}
	if err := json.Unmarshal([]byte(text), &given); err != nil {
		t.Fatal(err)
	}
	_, _ = New(Options{Folder: given.Folder}).Ensure(t.Context(), request(t, given.Start), quiet)
}

// TestKillsLeaveNothing kills npm, and the process that runs it, at random moments. Nothing may
// be recorded that is not complete, and the next installation must work.
func TestKillsLeaveNothing(t *testing.T) {
	t.Parallel()
	from := published(t)
	for n := range kills() {
		folder := t.TempDir()
		s, begun := New(Options{Folder: folder}), start(t, from, "@scope/server")
		text, err := json.Marshal(map[string]any{"Folder": folder, "Start": begun})
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestInstallInAnotherProcess$")
		cmd.Env = append(begun.Install, killed+"="+string(text))
		killAt(from, n, func() {
			if n%2 == 0 {
				_ = cmd.Process.Kill()
				return
			}
			for _, pid := range inFolder(folder) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		})
		_ = cmd.Run() // it was killed, or npm was, or neither in time
		from.Hold(func(string) {})
		if record, known := s.Find(request(t, begun)); known && !exists(s.path(record.Folder, "node_modules", "dep", "index.js")) {
			t.Errorf("%d: recorded but not complete: %+v", n, record)
		}
		record, err := s.Ensure(context.WithoutCancel(t.Context()), request(t, begun), quiet)
		if err != nil {
			t.Fatalf("%d: the next installation: %v", n, err)
		}
		if err := exec.CommandContext(t.Context(), "node", s.path(record.Folder, record.Bin)).Run(); err != nil {
			t.Errorf("%d: the program: %v", n, err)
		}
		if left := entries(t, s, "tmp"); len(left) > 0 {
			t.Errorf("%d: %q is left", n, left)
		}
	}
}

// killAt calls kill at a random moment of an installation: at a request, or later.
func killAt(from *packagestest.Registry, n int, kill func()) {
	random := rand.New(rand.NewPCG(1, uint64(n))) //nolint:gosec // the same moments each time
	at, later := int32(1+random.IntN(4)), time.Duration(random.IntN(600))*time.Millisecond
	var requests atomic.Int32
	from.Hold(func(string) {
		if requests.Add(1) == at {
			time.AfterFunc(later, kill)
		}
	})
}

// inFolder are the processes that run in a folder.
func inFolder(folder string) (list []int) {
	found, _ := filepath.Glob("/proc/[0-9]*/cwd") // the pattern is valid
	for _, link := range found {
		if at, err := os.Readlink(link); err == nil && strings.HasPrefix(at, folder) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
				list = append(list, pid)
			}
		}
	}
	return list
}
