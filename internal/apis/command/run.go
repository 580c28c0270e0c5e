package command

import (
	"context"
	"errors"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// maxErrors is how much of the standard error of a program is kept.
const maxErrors = 16 << 10

// outcome is how a program ended.
type outcome struct {
	stdout, stderr head
	status         int
}

// run runs the program to its end, or until its timeout or the end of ctx, which end the
// processes that it started, too.
func (c *command) run(ctx context.Context, args []string, stdin string) (e outcome, err error) {
	program := c.template.program
	ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout, fault.New(fault.Timeout, "run %s: it took longer than %s", program, c.Timeout))
	defer cancel()
	e.stdout.left, e.stderr.left = c.MaxBytes, maxErrors
	child := exec.CommandContext(ctx, program, args...)
	child.Dir, child.Env = c.Dir, []string{}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		child.Env = append(child.Env, name+"="+c.Env[name])
	}
	child.Stdin, child.Stdout, child.Stderr = strings.NewReader(stdin), &e.stdout, &e.stderr
	child.WaitDelay = time.Second
	endWithChildren(child)
	err = child.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return e, context.Cause(ctx)
	case errors.As(err, &exit):
		e.status = exit.ExitCode()
	case errors.Is(err, exec.ErrWaitDelay): // it ended, and left a process behind that holds its output
	case err != nil:
		return e, fault.Wrap(fault.Unavailable, err, "run %s", program)
	}
	return e, nil
}

// head stores the beginning of what is written to it.
type head struct {
	data []byte
	left int
	cut  bool // there was more
}

func (h *head) Write(p []byte) (int, error) {
	keep := p[:min(len(p), h.left)]
	h.left -= len(keep)
	h.data = append(h.data, keep...)
	h.cut = h.cut || len(keep) < len(p)
	return len(p), nil
}
