package wicket

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/clock/clocktest"
)

// Whoever computes without a pause on the only processor does not keep others from
// being answered, though nothing told the scheduler that somebody came (see package
// sock), and the guard had dozed off.
func TestWhoComputesKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBusyServer$") //nolint:gosec // it is this program
	cmd.Env = append(os.Environ(), "LUANETTE_TEST_BUSY=1", "GOMAXPROCS=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	address, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	busy, busyIn := wireTo(t, strings.TrimSpace(address))
	other, otherIn := wireTo(t, strings.TrimSpace(address))
	for _, c := range []struct {
		io.Writer
		in *bufio.Reader
	}{{busy, busyIn}, {other, otherIn}} {
		if _, err := io.WriteString(c, post("/", "", "")); err != nil {
			t.Fatal(err)
		}
		wantAnswer(t, c.in, "here")
	}
	if line, err := lines.ReadString('\n'); err != nil || line != "dozing\n" {
		t.Fatalf("%q, %v", line, err)
	}
	const moment = 50 * time.Millisecond
	time.Sleep(moment) // until the watchdog sleeps, of which nobody tells
	say(t, busy, post("/compute", "", ""))
	time.Sleep(moment) // until it computes: telling would wake the watchdog
	say(t, other, post("/enough", "", ""))
	wantAnswer(t, otherIn, "here")
	wantAnswer(t, busyIn, "here")
	_ = stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestBusyServer is that server, in a process of its own.
func TestBusyServer(t *testing.T) { //nolint:paralleltest // it is alone
	if os.Getenv("LUANETTE_TEST_BUSY") == "" {
		t.Skip("only for TestWhoComputesKeepsNobodyWaiting")
	}
	var enough atomic.Bool
	s := serve(t, Limits{}, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/compute":
			for !enough.Load() {
			}
		case "/enough":
			enough.Store(true)
		}
		_, _ = io.WriteString(w, "here")
	})
	fmt.Println(s.address)
	clocktest.Await(t, s.dozing.Load)
	fmt.Println("dozing")
	_, _ = io.Copy(io.Discard, os.Stdin)
}
