package command

import (
	"context"
	"errors"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/sandbox/launch"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// maxErrors is how much of the standard error of a program is kept.
const maxErrors = 16 << 10

// outcome is how a program ended.
type outcome struct {
	stdout, stderr head
	status         int
	refusals       []profile.Refusal
}

// run runs the program to its end, or until its timeout or the end of ctx, which end the
// processes that it started, too.
func (c *command) run(ctx context.Context, args []string, stdin string) (e outcome, err error) {
	program := c.template.program
	ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout, fault.New(fault.Timeout, "run %s: it took longer than %s", program, c.Timeout))
	defer cancel()
	e.stdout.left, e.stderr.left = c.MaxBytes, maxErrors
	child, err := c.command(ctx, args)
	if err != nil {
		return e, err
	}
	child.Stdin, child.Stdout, child.Stderr = strings.NewReader(stdin), &e.stdout, &e.stderr
	var refused sync.Mutex
	child.Refused = func(r profile.Refusal) {
		refused.Lock()
		defer refused.Unlock()
		e.refusals = append(e.refusals, r)
	}
	err = child.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return e, context.Cause(ctx)
	case errors.As(err, &exit):
		e.status = exit.ExitCode()
	case errors.Is(err, exec.ErrWaitDelay): // it ended, and left a process behind that holds its output
	case err != nil:
		return e, fault.Wrap(fault.Unavailable, err, "run %s", program).WithHint("%s", fault.HintOf(err))
	}
	return e, nil
}

// command is the program in its sandbox, ready to be started.
func (c *command) command(ctx context.Context, args []string) (*launch.Command, error) {
	path, err := c.find()
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "run %s", c.template.program)
	}
	env := []string{}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		env = append(env, name+"="+c.Env[name])
	}
	child, err := c.launcher.CommandContext(ctx, c.Sandbox, launch.Program{Path: path, Args: append([]string{c.template.program}, args...), Env: env, Dir: c.Dir})
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "run %s", c.template.program).WithHint("%s", fault.HintOf(err))
	}
	endWithChildren(child.Cmd)
	return child, nil
}

// find is the path of the program. That of a container is in its image, and a relative
// one begins at the folder that it runs in.
func (c *command) find() (string, error) {
	program := c.template.program
	if _, _, container := c.Sandbox.Level.Container(); container {
		return program, nil
	}
	if filepath.Base(program) != program && !filepath.IsAbs(program) {
		absolute, err := filepath.Abs(filepath.Join(c.Dir, program))
		if err != nil {
			return "", err
		}
		program = absolute
	}
	return exec.LookPath(program)
}

// refused says what the sandbox refused, one line each.
func (e outcome) refused() string {
	var lines strings.Builder
	for _, r := range e.refusals {
		lines.WriteString("\nsandbox: " + r.String())
		if r.Allow != "" {
			lines.WriteString("; to allow it: " + r.Allow)
		}
	}
	return lines.String()
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
