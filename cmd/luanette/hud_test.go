package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
)

// hudServer is a real server in a process of its own, which can be killed and
// started again where it was.
type hudServer struct {
	t      *testing.T
	folder string
	listen string
	cmd    *exec.Cmd
}

func startServer(t *testing.T, config string) *hudServer {
	t.Helper()
	s := &hudServer{t: t, folder: t.TempDir(), listen: netguardtest.ReservedAddress()}
	if err := os.WriteFile(filepath.Join(s.folder, "luanette.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *hudServer) url() string { return "http://" + s.listen }

func (s *hudServer) start() {
	s.t.Helper()
	s.cmd = s.command("serve", "--listen", s.listen)
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	said := bufio.NewScanner(stderr)
	for said.Scan() {
		if _, at, ok := strings.Cut(said.Text(), "is listening on http://"); ok {
			s.listen = at
			go func() { _, _ = io.Copy(io.Discard, stderr) }() // ends with the process
			return
		}
	}
	s.t.Fatalf("the server did not start: %v", said.Err())
}

func (s *hudServer) kill() {
	_ = s.cmd.Process.Kill() // it may have ended already
	_ = s.cmd.Wait()
}

func (s *hudServer) command(args ...string) *exec.Cmd {
	s.t.Helper()
	program, err := exec.LookPath("luanette")
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(s.t.Context(), program, args...)
	cmd.Dir = s.folder
	cmd.Env = []string{"HOME=" + s.folder, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color"}
	return cmd
}

// run runs a command against the server and returns its output.
func (s *hudServer) run(args ...string) string {
	s.t.Helper()
	out, err := s.command(append(args, "--server", s.url())...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// hudTerminal is the real `luanette hud` on a virtual terminal.
type hudTerminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	tty    *os.File
	screen vt10x.Terminal

	mu  sync.Mutex
	raw bytes.Buffer // every byte it wrote

	closed chan struct{} // closed when there is no more to read
}

func (s *hudServer) watch(width, height int, env ...string) *hudTerminal {
	s.t.Helper()
	w := &hudTerminal{t: s.t, cmd: s.command("hud", "--server", s.url()), screen: vt10x.New(vt10x.WithSize(width, height))}
	w.cmd.Env = append(w.cmd.Env, env...)
	line, err := pty.StartWithSize(w.cmd, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)})
	if err != nil {
		s.t.Skipf("there are no terminals here: %v", err)
	}
	w.tty = line
	w.closed = make(chan struct{})
	go func() { // ends with the process
		defer close(w.closed)
		_, _ = io.Copy(w, line)
	}()
	s.t.Cleanup(func() {
		_ = w.cmd.Process.Kill() // it may have ended already
		_ = line.Close()
		<-w.closed
	})
	return w
}

// wait waits for the program to end, and for all it wrote.
func (w *hudTerminal) wait() error {
	err := w.cmd.Wait()
	<-w.closed
	return err
}

// Write draws on the screen what the program writes.
func (w *hudTerminal) Write(p []byte) (int, error) {
	w.mu.Lock()
	w.raw.Write(p)
	w.mu.Unlock()
	return w.screen.Write(p)
}

func (w *hudTerminal) press(keys string) {
	w.t.Helper()
	if _, err := w.tty.WriteString(keys); err != nil {
		w.t.Fatal(err)
	}
}

func (w *hudTerminal) resize(width, height int) {
	w.t.Helper()
	w.screen.Resize(width, height)
	if err := pty.Setsize(w.tty, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)}); err != nil {
		w.t.Fatal(err)
	}
}

// awaitText waits until a line of the screen matches.
func (w *hudTerminal) awaitText(pattern string) {
	w.t.Helper()
	want := regexp.MustCompile("(?m)" + pattern)
	clocktest.Await(w.t, func() bool { return want.MatchString(w.screen.String()) },
		func() string { return pattern + " is not on the screen:\n" + w.screen.String() })
}

// TestHUDOfARealServer watches an upstream that ends and reconnects, cancels a job from
// the keyboard, restarts the server and changes the size of the terminal.
func TestHUDOfARealServer(t *testing.T) {
	t.Parallel()
	behind := startServer(t, "")
	front := startServer(t, fmt.Sprintf("[jobs]\ntimeout = \"10m\"\n[upstreams.far]\nurl = %q\n", behind.url()+"/mcp"))
	w := front.watch(100, 30)
	w.awaitText(`far +connected`)

	behind.kill()
	w.press("r")
	w.awaitText(`far +reconnecting`)
	w.awaitText(`far: disconnected, attempt \d+`)
	behind.start()
	w.press("r")
	w.awaitText(`far +connected`)

	script := filepath.Join(front.folder, "slow.lua")
	err := os.WriteFile(script, []byte(`function describe() return {name = "slow", description = "Takes its time."} end
function main() for i = 1, 10000 do progress(i / 10000, "step " .. i) clock.sleep(50) end end`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	hash := regexp.MustCompile(`[0-9a-f]{64}`).FindString(front.run("script", "store", script, "--json"))
	front.run("job", "start", hash)
	w.awaitText(`slow +running .* step \d+`)
	w.press("2c")
	w.awaitText(`Cancel slow\? y or n`)
	w.press("y")
	w.awaitText(`slow +cancelled`)

	front.kill()
	w.awaitText(`disconnected, next attempt in`)
	front.start()
	w.awaitText(`Luanette .* live`)
	w.awaitText(`slow +cancelled`) // it remembers, and so does the dashboard

	w.resize(160, 40)
	w.awaitText(`1 Upstreams 1 .*│─ 2 Jobs 1`)
	w.resize(40, 10)
	w.awaitText(`^─ 2 Jobs 1 ─`)
	w.press("q")
	if err := w.wait(); err != nil {
		t.Errorf("it left with %v", err)
	}
}

func TestHUDColours(t *testing.T) {
	t.Parallel()
	front := startServer(t, "[upstreams.far]\nurl = \"http://127.0.0.1:1/mcp\"\n")
	colour := regexp.MustCompile("\x1b\\[(\\d+;)*(3[0-7]|9[0-7]|38;[0-9;]+)m")
	for _, tt := range []struct {
		env  []string
		want bool
	}{{nil, true}, {[]string{"NO_COLOR=1"}, false}} {
		w := front.watch(80, 24, tt.env...)
		w.awaitText(`far +reconnecting`)
		w.press("q")
		if err := w.wait(); err != nil {
			t.Errorf("it left with %v", err)
		}
		w.mu.Lock()
		if got := colour.Match(w.raw.Bytes()); got != tt.want {
			t.Errorf("%v: colours %v, want %v", tt.env, got, tt.want)
		}
		w.mu.Unlock()
	}
}

func TestHUDInterrupted(t *testing.T) {
	t.Parallel()
	w := startServer(t, "").watch(80, 24)
	w.awaitText("live")
	if err := w.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var failed *exec.ExitError
	if err := w.wait(); errors.As(err, &failed) {
		t.Errorf("it left with %v", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !strings.Contains(w.raw.String(), "\x1b[?1049l") {
		t.Error("the terminal was left on the other screen")
	}
}
