package upstream

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/sandbox/launch"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// process is a server process with its three streams.
type process struct {
	cmd    *launch.Command
	stdin  *os.File
	stdout *os.File
	stderr *os.File
	// stdinReader is the process's own end of stdin. What is left in it when the
	// process ends was never read.
	stdinReader *os.File
	exited      chan struct{} // closed when the process has ended
	state       error         // how it ended; read after exited
}

// startProcess starts the command in a process group of its own, inside its sandbox.
// It tells refused what the sandbox refuses.
func (o *Options) startProcess(spec Spec, env []string, refused func(profile.Refusal)) (*process, error) {
	program, err := o.findProgram(spec, env)
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", spec.Command, err)
	}
	limits := spec.Sandbox
	limits.Name, limits.Credentials = spec.programName(), spec.Credentials
	cmd, err := o.Sandbox.Command(limits, launch.Program{
		Path: program, Args: append([]string{spec.Command}, spec.Args...), Env: env, Dir: spec.Cwd,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", spec.Command, err)
	}
	cmd.Refused = refused
	c := &process{cmd: cmd, exited: make(chan struct{})}
	setProcessGroup(c.cmd.Cmd)
	theirs, err := c.openPipes()
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", spec.Command, err)
	}
	err = c.cmd.Start()
	for _, end := range theirs[1:] {
		end.Close()
	}
	if err != nil {
		c.closePipes()
		return nil, fmt.Errorf("cannot start %s: %w", spec.Command, err)
	}
	go func() {
		c.state = c.cmd.Wait()
		close(c.exited)
	}()
	return c, nil
}

// openPipes makes the three pipes. They are ours rather than exec's, so that we
// can stop reading although a grandchild keeps its end open.
func (p *process) openPipes() (theirs []*os.File, err error) {
	defer func() {
		if err != nil {
			p.closePipes()
			for _, end := range theirs {
				end.Close()
			}
		}
	}()
	in, mine, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.stdin, p.stdinReader, theirs = mine, in, append(theirs, in)
	mine, out, err := os.Pipe()
	if err != nil {
		return theirs, err
	}
	p.stdout, theirs = mine, append(theirs, out)
	mine, errs, err := os.Pipe()
	if err != nil {
		return theirs, err
	}
	p.stderr, theirs = mine, append(theirs, errs)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = in, out, errs
	return theirs, nil
}

func (p *process) closePipes() {
	for _, end := range []*os.File{p.stdin, p.stdinReader, p.stdout, p.stderr} {
		if end != nil {
			end.Close()
		}
	}
}

// stop closes the process's input, then sends a signal, then kills it and
// everything it started. It returns when the process has ended.
func (p *process) stop(grace time.Duration) {
	p.stdin.Close()
	if !p.exitedWithin(grace / 4) {
		terminate(p.cmd.Cmd)
		if !p.exitedWithin(grace - grace/4) {
			p.cmd.End()
			if !p.exitedWithin(grace / 4) {
				kill(p.cmd.Cmd)
			}
		}
	}
	<-p.exited
	kill(p.cmd.Cmd) // processes of its group that still run
	p.closePipes()
}

func (p *process) exitedWithin(within time.Duration) bool {
	select {
	case <-p.exited:
		return true
	default:
	}
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// errProcess is wrapped by errors that are due to the end of a process.
var errProcess = errors.New("process ended")

// endReason is why the process closed its output, with what it wrote to stderr.
func (p *process) endReason(stderr *stderrLines) error {
	if !p.exitedWithin(200 * time.Millisecond) {
		return stderr.explain(fmt.Errorf("%w: it closed its output", errProcess))
	}
	stderr.awaitEnd(200 * time.Millisecond)
	if p.state != nil {
		return stderr.explain(fmt.Errorf("%w: %w", errProcess, p.state))
	}
	return stderr.explain(errProcess)
}

// findProgram finds the program of a spec. That of a container is in its image.
func (o *Options) findProgram(spec Spec, env []string) (string, error) {
	if _, _, container := spec.Sandbox.Level.Container(); container {
		return spec.Command, nil
	}
	return lookPath(spec.Command, o.searchPath(env))
}

// lookPath finds the program in the path of the child process, not in ours.
func lookPath(name, path string) (string, error) {
	switch {
	case strings.ContainsRune(name, os.PathSeparator):
		return name, nil
	case path == "":
		return "", fmt.Errorf("no PATH to find it in: %w", exec.ErrNotFound)
	}
	return findIn(path, name)
}

func findIn(path, name string) (string, error) {
	for _, dir := range strings.Split(path, string(os.PathListSeparator)) {
		if dir == "" {
			continue
		}
		if found, err := exec.LookPath(dir + string(os.PathSeparator) + name); err == nil {
			return found, nil
		}
	}
	return "", exec.ErrNotFound
}
