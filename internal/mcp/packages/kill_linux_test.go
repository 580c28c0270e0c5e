package packages

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
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
	files := map[string]string{"index.js": "exports.text = 'first'"}
	for n := range 200 { // so that there is time to kill what unpacks them
		files[fmt.Sprintf("lib/%d.js", n)] = strings.Repeat("// nothing\n", 100)
	}
	from.Replace("dep", "1.0.0", nil, files)
	hit := 0
	for n := range kills() {
		folder := t.TempDir()
		s, begun := New(Options{Folder: folder}), start(t, from, "@scope/server")
		text, err := json.Marshal(map[string]any{"Folder": folder, "Start": begun})
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestInstallInAnotherProcess$")
		cmd.Env = append(begun.Install, killed+"="+string(text))
		installer := make(chan int, 1)
		end := killAt(from, n, func() {
			targets := inFolder(folder) // npm
			if n%2 == 0 {
				targets = []int{<-installer}
			}
			for _, pid := range targets {
				hit++
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		})
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		installer <- cmd.Process.Pid
		_ = cmd.Wait() // it was killed, or npm was, or neither in time
		end()
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
	if t.Logf("%d of %d installations were killed", hit, kills()); hit == 0 {
		t.Error("no installation was killed")
	}
}

// killAt calls kill at a random moment of an installation: at a request, or later. After end it
// does not: the installation that follows is not the one to kill.
func killAt(from *packagestest.Registry, n int, kill func()) (end func()) {
	random := rand.New(rand.NewPCG(1, uint64(n))) //nolint:gosec // the same moments each time
	at, later := 1+random.IntN(4), time.Duration(random.IntN(150))*time.Millisecond
	var mu sync.Mutex // of what follows; kill runs with it
	requests, over := 0, false
	from.Hold(func(string) {
		mu.Lock()
		defer mu.Unlock()
		if requests++; requests != at {
			return
		}
		time.AfterFunc(later, func() {
			mu.Lock()
			defer mu.Unlock()
			if !over {
				kill()
			}
		})
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		from.Hold(func(string) {})
	}
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
