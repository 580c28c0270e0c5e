package upstream

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
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

// inherited are the variables that a child process gets from us: those that
// programs need to run at all, and nothing that could be a secret.
func inherited() []string {
	return []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "TMPDIR",
		"SYSTEMROOT", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMFILES",
	}
}

// childEnv is the environment of a child process: the inherited variables, then
// those of the spec.
func (o *Options) childEnv(spec Spec) ([]string, error) {
	vars := map[string]string{}
	for _, name := range inherited() {
		if value, ok := o.Getenv(name); ok {
			vars[name] = value
		}
	}
	if spec.EnvFile != "" {
		text, err := os.ReadFile(spec.EnvFile)
		if err != nil {
			return nil, fmt.Errorf("read env file: %w", err)
		}
		declared, err := parseEnvFile(string(text))
		if err != nil {
			return nil, fmt.Errorf("read env file %s: %w", spec.EnvFile, err)
		}
		maps.Copy(vars, declared)
	}
	for name, value := range spec.Env {
		found, err := o.reveal(spec, value)
		if err != nil {
			return nil, fault.Wrap(fault.NeedsAuth, err, "variable %s of %s", name, spec.Name).WithHint("%s", fault.HintOf(err))
		}
		vars[name] = found
	}
	env := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env, nil
}

// startProcess starts the command in a process group of its own.
func startProcess(spec Spec, env []string) (*process, error) {
	program, err := lookPath(spec.Command, env)
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

// endReason is why the process closed its output.
func (p *process) endReason(last *stderrTail) error {
	if !p.exitedWithin(200 * time.Millisecond) {
		return fmt.Errorf("%w: it closed its output", errProcess)
	}
	stderr := last.text(200 * time.Millisecond)
	if stderr != "" {
		stderr = ": " + stderr
	}
	if p.state != nil {
		return fmt.Errorf("%w: %w%s", errProcess, p.state, stderr)
	}
	return fmt.Errorf("%w%s", errProcess, stderr)
}

// lookPath finds the program in the PATH of the child process, not in ours.
func lookPath(name string, env []string) (string, error) {
	if strings.ContainsRune(name, os.PathSeparator) {
		return name, nil
	}
	for _, entry := range env {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok {
			return findIn(path, name)
		}
	}
	return "", fmt.Errorf("no PATH to find it in: %w", exec.ErrNotFound)
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

// Limits of what is stored of standard error.
const (
	maxStderrLine  = 8 << 10
	maxStderrLines = 5
)

// stderrTail stores the last lines of standard error, for endReason.
type stderrTail struct {
	mu    sync.Mutex
	lines []string
	ended chan struct{}
}

func newStderrTail() *stderrTail { return &stderrTail{ended: make(chan struct{})} }

func (t *stderrTail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lines = append(t.lines, line); len(t.lines) > maxStderrLines {
		t.lines = t.lines[1:]
	}
}

func (t *stderrTail) close() { close(t.ended) }

// text returns the last lines. It waits for a short time until the stream ends,
// which a grandchild may keep open.
func (t *stderrTail) text(within time.Duration) string {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-t.ended:
	case <-timer.C:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return excerpt([]byte(strings.Join(t.lines, " / ")))
}

// readStderr calls each with every line, cut to maxStderrLine, until the stream
// ends.
func readStderr(in io.Reader, each func(line string)) {
	lines := bufio.NewReaderSize(in, maxStderrLine)
	for {
		line, err := lines.ReadSlice('\n')
		if text := clean(string(line)); text != "" {
			each(text)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}
