package workspace

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/sandbox/launch"
	"github.com/luanette/luanette/internal/sandbox/profile"
	"github.com/luanette/luanette/internal/scripting/host"
)

// CommandOptions are the programs that scripts may run, and how.
type CommandOptions struct {
	Allow   []string      // names of programs; "*" allows all
	Dir     string        // where they run
	Env     []string      // their whole environment, as KEY=value
	Limit   int           // most bytes of each output; 0 means 1 MiB
	Timeout time.Duration // longest run; 0 means 30 s

	// Profile is what they may reach, and Sandbox starts them in it.
	Profile profile.Profile
	Sandbox *launch.Launcher
}

// Programs starts programs for scripts.
type Programs struct{ options CommandOptions }

// NewPrograms allows the programs of options; it returns nil if there are none.
func NewPrograms(o CommandOptions) host.Commands {
	if len(o.Allow) == 0 {
		return nil
	}
	if o.Limit == 0 {
		o.Limit = 1 << 20
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	return &Programs{options: o}
}

// Run runs a program to its end, or until its timeout or ctx is done.
func (p *Programs) Run(ctx context.Context, name string, args []string) (host.CommandResult, error) {
	o := p.options
	if err := p.Check(name); err != nil {
		return host.CommandResult{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, fault.New(fault.Unavailable, "run %s: it took longer than %s", name, o.Timeout))
	defer cancel()
	out, errs := &head{left: o.Limit}, &head{left: o.Limit}
	command, err := p.command(ctx, name, args)
	if err != nil {
		return host.CommandResult{}, err
	}
	command.Stdout, command.Stderr = out, errs
	err = command.Run()
	if ctx.Err() != nil {
		return host.CommandResult{}, context.Cause(ctx)
	}
	outcome := host.CommandResult{Stdout: string(out.data), Stderr: string(errs.data)}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		outcome.Status = exit.ExitCode()
	case err != nil:
		return host.CommandResult{}, fault.Wrap(fault.Unavailable, err, "run %s", name)
	}
	return outcome, nil
}

// command is the program in its sandbox, ready to be started. It ends with ctx.
func (p *Programs) command(ctx context.Context, name string, args []string) (*launch.Command, error) {
	o := p.options
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "run %s", name)
	}
	return o.Sandbox.CommandContext(ctx, o.Profile, launch.Program{Path: path, Args: append([]string{name}, args...), Env: append([]string{}, o.Env...), Dir: o.Dir})
}

// Check returns why a program cannot be run.
func (p *Programs) Check(name string) error {
	allow := p.options.Allow
	if !slices.Contains(allow, name) && !slices.Contains(allow, "*") {
		return fault.New(fault.Denied, "run %s: scripts may not run it", name).
			WithHint("allow it in the configuration with scripts.commands; allowed now: %v", allow)
	}
	if _, err := exec.LookPath(name); err != nil {
		return fault.Wrap(fault.Unavailable, err, "run %s", name)
	}
	return nil
}

// head stores the beginning of what is written to it.
type head struct {
	data []byte // not an embedded buffer, whose ReadFrom would bypass Write
	left int
}

func (h *head) Write(p []byte) (int, error) {
	keep := p[:min(len(p), h.left)]
	h.left -= len(keep)
	h.data = append(h.data, keep...)
	return len(p), nil
}
