package upstream

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// process is a server process with its three streams.
type process struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *os.File
	stderr *os.File
	// stdinReader is the process's own end of stdin. What is left in it when the
	// process ends was never read.
	stdinReader *os.File
	exited      chan struct{} // closed when the process has ended
	state       error         // how it ended; read after exited
}

// startProcess starts the command in a process group of its own.
func startProcess(spec Spec, env []string, path string) (*process, error) {
	program, err := lookPath(spec.Command, path)
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", spec.Command, err)
	}
	c := &process{cmd: exec.Command(program, spec.Args...), exited: make(chan struct{})}
	c.cmd.Args[0] = spec.Command
	c.cmd.Env, c.cmd.Dir = env, spec.Cwd
	setProcessGroup(c.cmd)
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
		terminate(p.cmd)
		if !p.exitedWithin(grace - grace/4) {
			kill(p.cmd)
		}
	}
	<-p.exited
	kill(p.cmd) // processes of its group that still run
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
