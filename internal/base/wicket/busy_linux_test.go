package wicket

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
)

const busyVariable = "LUANETTE_TEST_BUSY"

// TestMain is a server in a process of its own where TestWhoComputesKeepsNobodyWaiting
// asks for one.
func TestMain(m *testing.M) {
	if os.Getenv(busyVariable) == "" {
		os.Exit(m.Run())
	}
	if err := serveBusy(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Whoever computes without a pause on the only processor does not keep others from
// being answered, though nothing told the scheduler that somebody came (see package
// sock), and the guard had dozed off.
func TestWhoComputesKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // it is this program
	cmd.Env = append(os.Environ(), busyVariable+"=1", "GOMAXPROCS=1")
	cmd.Stderr = t.Output()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewScanner(stdout)
	said.Scan()
	busy, busyIn := wireTo(t, said.Text())
	other, otherIn := wireTo(t, said.Text())
	say(t, busy, post("/", "", ""))
	wantAnswer(t, busyIn, "here")
	say(t, other, post("/", "", ""))
	wantAnswer(t, otherIn, "here")
	if said.Scan(); said.Text() != "dozing" {
		t.Fatalf("the server says %q, %v", said.Text(), said.Err())
	}

	last, still := -1, 0
	clocktest.Await(t, func() bool { // until the watchdog sleeps, which looks around every 10 ms before
		_, turns := scheduled(t, cmd.Process.Pid)
		if turns != last {
			last, still = turns, 0
		}
		still++
		return still > 5
	})
	say(t, busy, post("/compute", "", ""))
	began, _ := scheduled(t, cmd.Process.Pid)
	clocktest.Await(t, func() bool { // until it computes: were it to tell, that would wake the watchdog
		ran, _ := scheduled(t, cmd.Process.Pid)
		return ran > began+20*time.Millisecond
	})
	say(t, other, post("/enough", "", ""))
	wantAnswer(t, otherIn, "here")
	wantAnswer(t, busyIn, "here")
	_ = stdin.Close() // and so it ends
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// scheduled is how long all threads of a process ran so far, and how many times one
// was given a processor.
func scheduled(t *testing.T, pid int) (ran time.Duration, turns int) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		t.Fatalf("the kernel does not tell of process %d: %v", pid, err)
	}
	for _, path := range threads {
		text, err := os.ReadFile(path) //nolint:gosec // of a process of ours
		if err != nil {
			t.Fatal(err)
		}
		var took, waited time.Duration
		var n int
		if _, err := fmt.Sscan(string(text), &took, &waited, &n); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		ran, turns = ran+took, turns+n
	}
	return ran, turns
}

// serveBusy serves until standard input ends. It says where, and when its guard dozes.
func serveBusy() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	var enough atomic.Bool
	s := New(&http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // a test's
		switch r.URL.Path {
		case "/compute":
			for !enough.Load() {
			}
		case "/enough":
			enough.Store(true)
		}
		_, _ = io.WriteString(w, "here") // whoever left is missed by the test
	})}, Limits{})
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(listener) }()
	fmt.Println(listener.Addr())
	if !clocktest.Poll(context.Background(), s.dozing.Load) {
		return errors.New("the guard does not doze")
	}
	fmt.Println("dozing")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	if err := errors.Join(s.Close(), <-ended); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
