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

// running is a real server in a process of its own, which can be killed and
// started again where it was.
type running struct {
	t      *testing.T
	folder string
	listen string
	cmd    *exec.Cmd
}

func startServer(t *testing.T, config string) *running {
	t.Helper()
	s := &running{t: t, folder: t.TempDir(), listen: netguardtest.ReservedAddress()}
	if err := os.WriteFile(filepath.Join(s.folder, "luanette.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *running) url() string { return "http://" + s.listen }

func (s *running) start() {
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

func (s *running) kill() {
	_ = s.cmd.Process.Kill() // it may have ended already
	_ = s.cmd.Wait()
}

func (s *running) command(args ...string) *exec.Cmd {
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

// says runs a command against the server and returns its output.
func (s *running) says(args ...string) string {
	s.t.Helper()
	out, err := s.command(append(args, "--server", s.url())...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// watcher is the real `luanette hud` on a virtual terminal.
type watcher struct {
	t      *testing.T
	cmd    *exec.Cmd
	line   *os.File
	screen vt10x.Terminal

	mu  sync.Mutex
	raw bytes.Buffer // every byte it wrote

	drawn chan struct{} // closed when there is no more to read
}

func (s *running) watch(width, height int, env ...string) *watcher {
	s.t.Helper()
	w := &watcher{t: s.t, cmd: s.command("hud", "--server", s.url()), screen: vt10x.New(vt10x.WithSize(width, height))}
	w.cmd.Env = append(w.cmd.Env, env...)
	line, err := pty.StartWithSize(w.cmd, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)})
	if err != nil {
		s.t.Skipf("there are no terminals here: %v", err)
	}
	w.line = line
	w.drawn = make(chan struct{})
	go func() { // ends with the process
		defer close(w.drawn)
		_, _ = io.Copy(w, line)
	}()
	s.t.Cleanup(func() {
		_ = w.cmd.Process.Kill() // it may have ended already
		_ = line.Close()
		<-w.drawn
	})
	return w
}

// ends waits for the program to end, and for all it wrote.
func (w *watcher) ends() error {
	err := w.cmd.Wait()
	<-w.drawn
	return err
}

// Write draws on the screen what the program writes.
func (w *watcher) Write(p []byte) (int, error) {
	w.mu.Lock()
	w.raw.Write(p)
	w.mu.Unlock()
	return w.screen.Write(p)
}

func (w *watcher) types(keys string) {
	w.t.Helper()
	if _, err := w.line.WriteString(keys); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watcher) resize(width, height int) {
	w.t.Helper()
	w.screen.Resize(width, height)
	if err := pty.Setsize(w.line, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)}); err != nil {
		w.t.Fatal(err)
	}
}

// reads waits until a line of the screen matches.
func (w *watcher) reads(pattern string) {
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
	w.reads(`far +connected`)

	behind.kill()
	w.types("r")
	w.reads(`far +reconnecting`)
	w.reads(`far: disconnected, attempt \d+`)
	behind.start()
	w.types("r")
	w.reads(`far +connected`)

	script := filepath.Join(front.folder, "slow.lua")
	err := os.WriteFile(script, []byte(`function describe() return {name = "slow", description = "Takes its time."} end
function main() for i = 1, 10000 do progress(i / 10000, "step " .. i) clock.sleep(50) end end`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	hash := regexp.MustCompile(`[0-9a-f]{64}`).FindString(front.says("script", "store", script, "--json"))
	front.says("job", "start", hash)
	w.reads(`slow +running .* step \d+`)
	w.types("2c")
	w.reads(`Cancel slow\? y or n`)
	w.types("y")
	w.reads(`slow +cancelled`)

	front.kill()
	w.reads(`disconnected, next attempt in`)
	front.start()
	w.reads(`Luanette .* live`)
	w.reads(`slow +cancelled`) // it remembers, and so does the dashboard

	w.resize(160, 40)
	w.reads(`1 Upstreams 1 .*│─ 2 Jobs 1`)
	w.resize(40, 10)
	w.reads(`^─ 2 Jobs 1 ─`)
	w.types("q")
	if err := w.ends(); err != nil {
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
		w.reads(`far +reconnecting`)
		w.types("q")
		if err := w.ends(); err != nil {
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
	w.reads("live")
	if err := w.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var failed *exec.ExitError
	if err := w.ends(); errors.As(err, &failed) {
		t.Errorf("it left with %v", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !strings.Contains(w.raw.String(), "\x1b[?1049l") {
		t.Error("the terminal was left on the other screen")
	}
}
