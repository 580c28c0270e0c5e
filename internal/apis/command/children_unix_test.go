//go:build unix

package command

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/luanette/luanette/internal/apis/api"
	"github.com/luanette/luanette/internal/base/fault"
)

// TestChildrenEnd cancels the call of a program that waits for another one, which holds a
// pipe open until it ends.
func TestChildrenEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	commands := open(t, map[string]api.CommandTool{
		"long": {Args: line("sh", "-c", `sleep 100000 > "$0" & wait`, "{{pipe}}")},
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := call(ctx, commands, "long", `{"pipe":"`+path+`"}`)
		ended <- err
	}()
	pipe, err := os.Open(path) // it waits for the other program
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	cause := fault.New(fault.Cancelled, "the caller left")
	cancel(cause)
	if err := <-ended; err != cause { //nolint:errorlint // the cause itself
		t.Errorf("after the end of the call: %v", err)
	}
	if _, err := io.ReadAll(pipe); err != nil { // until the other program has ended
		t.Error(err)
	}
}
