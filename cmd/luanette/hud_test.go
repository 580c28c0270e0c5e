package main

import (
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

	"github.com/luanette/luanette/internal/base/programtest"
	"github.com/luanette/luanette/internal/ui/terminal/terminaltest"
)

// startServer starts a server with a configuration.
func startServer(t *testing.T, config string) *programtest.Server {
	t.Helper()
	s := programtest.New(t, config)
	s.Start(t)
	return s
}

// runOn runs a command against a server and returns its output.
func runOn(t *testing.T, s *programtest.Server, args ...string) string {
	t.Helper()
	out, err := s.Command(t.Context(), append(args, "--server", s.URL())...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// hudTerminal is the real program on a virtual terminal.
type hudTerminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	tty    *os.File
	screen *terminaltest.Screen

	mu  sync.Mutex
	raw bytes.Buffer // every byte it wrote

	closed chan struct{} // closed when all output is read
}

// watch shows the dashboard of a server.
func watch(t *testing.T, s *programtest.Server, width, height int, env ...string) *hudTerminal {
	t.Helper()
	return onTerminal(t, programtest.Command(t.Context(), s.Folder, append(env, "TERM=xterm-256color"), "hud", "--server", s.URL()), width, height)
}

// onTerminal runs a command on a virtual terminal.
func onTerminal(t *testing.T, cmd *exec.Cmd, width, height int) *hudTerminal {
	t.Helper()
	w := &hudTerminal{t: t, cmd: cmd, screen: terminaltest.New(width, height)}
	tty, err := pty.StartWithSize(w.cmd, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)})
	if err != nil {
		t.Skipf("this system has no pseudo-terminals: %v", err)
	}
	w.tty = tty
	w.closed = make(chan struct{})
	go func() { // ends with the process
		defer close(w.closed)
		_, _ = io.Copy(w, tty)
	}()
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill() // it may have ended already
		_ = tty.Close()
		<-w.closed
	})
	return w
}

// wait waits until the program has ended and its output is read.
func (w *hudTerminal) wait() error {
	err := w.cmd.Wait()
	<-w.closed
	return err
}

// Write draws the program's output on the screen.
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

// awaitText waits until a line of the screen matches a pattern.
func (w *hudTerminal) awaitText(pattern string) {
	w.t.Helper()
	want := regexp.MustCompile("(?m)" + pattern)
	w.screen.Await(w.t, pattern, want.MatchString)
}

// TestHUDOfARealServer watches an upstream that ends and reconnects, cancels a job from
// the keyboard, restarts the server and changes the size of the terminal.
func TestHUDOfARealServer(t *testing.T) {
	t.Parallel()
	behind := startServer(t, "")
	front := startServer(t, fmt.Sprintf("[jobs]\ntimeout = \"10m\"\n[upstreams.far]\nurl = %q\n", behind.URL()+"/mcp"))
	w := watch(t, front, 100, 30)
	w.press("0")
	w.awaitText(`far +connected`)

	behind.Kill()
	w.press("r")
	w.awaitText(`far +reconnecting`)
	w.awaitText(`far: disconnected, attempt \d+`)
	behind.Start(t)
	w.press("r")
	w.awaitText(`far +connected`)

	script := filepath.Join(front.Folder, "slow.lua")
	err := os.WriteFile(script, []byte(`function describe() return {name = "slow", description = "Runs for minutes."} end
function main() for i = 1, 10000 do progress(i / 10000, "step " .. i) clock.sleep(50) end end`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	hash := regexp.MustCompile(`[0-9a-f]{64}`).FindString(runOn(t, front, "script", "store", script, "--json"))
	runOn(t, front, "job", "start", hash)
	w.awaitText(`slow +running .* step \d+`)
	w.press("5c")
	w.awaitText(`Cancel slow\? It stops after its current step.  y yes`)
	w.press("y")
	w.awaitText(`slow +cancelled`)

	front.Kill()
	w.awaitText(`disconnected, next attempt in`)
	w.awaitText(`slow +cancelled`) // the last data stays
	front.Start(t)
	w.awaitText(`Luanette .* live`)
	w.awaitText(`slow +cancelled`) // the job is stored

	w.press("0")
	w.resize(160, 40)
	w.awaitText(`Servers 1 .*│─ Jobs 1`)
	w.resize(60, 20)
	w.awaitText(`^─ Jobs 1 ─`)
	w.press("q")
	if err := w.wait(); err != nil {
		t.Errorf("exit: %v", err)
	}
}

// shellServer is an upstream with one tool. It is a shell script, since it must not
// write files.
const shellServer = `approve = "writes"
[upstreams.child]
command = "sh"
args = ["-c", '''
echo ready to work >&2
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  [ -n "$id" ] || continue
  case $line in
  *'"initialize"'*) answer='"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"child","version":"1"}}' ;;
  *'"tools/list"'*) answer='"result":{"tools":[{"name":"note","description":"Writes a note.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}]}' ;;
  *'"tools/call"'*) answer='"result":{"content":[{"type":"text","text":"noted"}]}' ;;
  *) answer='"error":{"code":-32601,"message":"unknown method"}' ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$answer"
done
''']
`

// TestHUDOperatesARealServer looks at the tools, the standard error and the traces of a
// program, and decides an approval.
func TestHUDOperatesARealServer(t *testing.T) {
	t.Parallel()
	s := startServer(t, shellServer)
	w := watch(t, s, 100, 30)
	w.press("0")
	w.awaitText(`child +connected`)
	w.press("2l")
	w.awaitText(`^ \d\d:\d\d:\d\d ready to work`)
	w.press("q\r")
	w.awaitText(`^─ Servers › child \d+ ─`)
	w.press("/not\r")
	w.awaitText(`^›note `)
	w.press("\r")
	w.awaitText(`in scripts mcp\.child\.note`)

	waiting := s.Command(t.Context(), "eval", "--server", s.URL(), `return mcp.child.note{text = "tried"}`)
	var exit *exec.ExitError
	if err := waiting.Run(); !errors.As(err, &exit) || exit.ExitCode() != exitWaiting {
		t.Fatalf("it does not wait for approval: %v", err)
	}
	w.press("4")
	w.awaitText(`^›pending +child\.note`)
	w.press("a")
	w.awaitText(`^   text: "tried"`) // the plan
	w.awaitText(`^Allow 1 effect: call child\.note\?  y once`)
	w.press("y")
	w.awaitText(`^ status +allowed`)

	w.press("7/child.note\r")
	w.awaitText(`^›\d\d:\d\d:\d\d ok .* child\.note`)
	w.press("\r")
	w.awaitText(`^ +tools/call note +[\d.]+ [mµ]?s +━`)
	w.press(":q\r")
	if err := w.wait(); err != nil {
		t.Errorf("exit: %v", err)
	}
}

// TestHUDShell uses the REPL in the dashboard. An interrupt there does not end the
// dashboard.
func TestHUDShell(t *testing.T) {
	t.Parallel()
	w := watch(t, startServer(t, ""), 100, 30)
	w.awaitText("live")
	w.press("s")
	w.awaitText(`Ctrl-D exits`)
	w.press("return 20 + 22\r")
	w.awaitText(`^42`)
	w.press("print('running') while true do end\r")
	w.awaitText(`^running`)
	w.press("\x03")
	w.awaitText(`(?i)cancel|interrupt|stopped`)
	w.press("\x04")
	w.awaitText(`Luanette .* live`)
	w.awaitText(`back from the REPL`)
	w.press("2")
	w.awaitText(`^─ Servers 0 `)
	w.press("q")
	if err := w.wait(); err != nil {
		t.Errorf("exit: %v", err)
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
		w := watch(t, front, 80, 24, tt.env...)
		w.press("0")
		w.awaitText(`far +reconnecting`)
		w.press("q")
		if err := w.wait(); err != nil {
			t.Errorf("exit: %v", err)
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
	w := watch(t, startServer(t, ""), 80, 24)
	w.awaitText("live")
	if err := w.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var failed *exec.ExitError
	if err := w.wait(); errors.As(err, &failed) {
		t.Errorf("exit: %v", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !strings.Contains(w.raw.String(), "\x1b[?1049l") {
		t.Error("the terminal does not show its normal screen again")
	}
}
