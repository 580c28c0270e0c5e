//go:build unix

package main

import (
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
	"github.com/luanette/luanette/internal/base/programtest"
)

// A server ends with the terminal in which it runs.
func TestServerEndsWithItsTerminal(t *testing.T) {
	t.Parallel()
	screen, terminal, err := pty.Open()
	if err != nil {
		t.Skipf("this system has no pseudo-terminals: %v", err)
	}
	// Tests that nohup started ignore the signal, and so would the server.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	folder := t.TempDir()
	cmd := programtest.Command(t.Context(), folder, nil, "serve", "--listen", "127.0.0.1:0")
	cmd.Stdin, cmd.SysProcAttr = terminal, &syscall.SysProcAttr{Setsid: true, Setctty: true}
	_, output, err := programtest.Listen(cmd)
	_ = terminal.Close() // the server has it
	if err != nil {
		t.Fatal(err)
	}
	if err := screen.Close(); err != nil {
		t.Fatal(err)
	}
	log := <-output
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v\n%s", err, log)
	}
	if entries, err := filepath.Glob(filepath.Join(folder, programtest.DataFolder, "run", "*.json")); err != nil || len(entries) > 0 {
		t.Errorf("it left %v, %v", entries, err)
	}
}

// A server without a terminal reads its configuration again at SIGHUP, and goes on.
func TestServerWithoutTerminalReloads(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "server.toml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	cmd := programtest.Command(t.Context(), folder, nil, "serve", "--listen", "127.0.0.1:0", "--config", file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	url, output, err := programtest.Listen(cmd)
	if err != nil {
		t.Fatal(err)
	}
	write("[upstreams.fresh]\nurl = \"http://127.0.0.1:1/\"\n")
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	clocktest.Await(t, func() bool {
		_, text := httpjsontest.Read(t, "GET", url+"/health", "")
		return strings.Contains(text, `"fresh"`)
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	log := <-output
	if err := cmd.Wait(); err != nil || !strings.Contains(log, "configuration reloaded") {
		t.Errorf("%v\n%s", err, log)
	}
}
