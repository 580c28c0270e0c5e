package upstream

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
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
	if errors.Is(err, exec.ErrNotFound) {
		return nil, notFoundError(spec.Command)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", spec.Command, err)
	}
	limits := spec.Profile
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

// installerGrace is how long a package runner that is still installing has to end: npm removes
// what it has half written, and what a kill leaves stays broken.
const installerGrace = 30 * time.Second

// stop closes the process's input, then sends a signal, then kills it and
// everything it started. It returns when the process has ended. installs says that it is a
// package runner whose server has not answered yet.
func (p *process) stop(grace time.Duration, installs bool) {
	p.stdin.Close()
	if !p.exitedWithin(grace / 4) {
		terminate(p.cmd.Cmd)
		after := grace - grace/4
		if installs {
			after = installerGrace
		}
		if !p.exitedWithin(after) {
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
	if _, _, container := spec.Profile.Level.Container(); container {
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

// Inherited lists the variables that a child process gets from us, as patterns: what
// programs and package runners need to work as in a terminal. docs/upstreams.md says
// why each is needed.
func Inherited() []string {
	list := []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TERM", "TMPDIR", "XDG_*",
		"NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
		"NPM_CONFIG_*", "UV_*", "PIP_*", "npm_config_*", "uv_*", "pip_*",
	}
	if runtime.GOOS == "windows" {
		list = append(list, "COMSPEC", "PATHEXT", "SYSTEMDRIVE", "WINDIR", "OS", "NUMBER_OF_PROCESSORS", "PROCESSOR_*",
			"TEMP", "TMP", "USERNAME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA",
			"ALLUSERSPROFILE", "PROGRAMFILES*", "COMMONPROGRAMFILES*")
	}
	return list
}

// alwaysInherited are the variables without which no program starts.
func alwaysInherited() []string {
	if runtime.GOOS == "windows" {
		return []string{"SYSTEMROOT"}
	}
	return nil
}

// childEnv is the environment of a child process: the inherited variables, then
// those of the spec's file, then its own.
func (o *Options) childEnv(spec Spec) ([]string, error) {
	vars := o.inheritedBy(spec)
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

// inheritedBy are the variables of our environment that the spec's process gets.
func (o *Options) inheritedBy(spec Spec) map[string]string {
	patterns := slices.Concat(alwaysInherited(), spec.InheritEnv)
	if !spec.CleanEnv {
		patterns = append(patterns, Inherited()...)
	}
	vars := map[string]string{}
	for _, entry := range o.Environ() {
		name, value, _ := strings.Cut(entry, "=")
		if name != "" && slices.ContainsFunc(patterns, func(p string) bool { return matchesVariable(p, name) }) {
			vars[name] = value
		}
	}
	return vars
}

// matchesVariable reports whether a pattern matches the name of a variable. On
// Windows case does not matter.
func matchesVariable(pattern, name string) bool {
	if runtime.GOOS == "windows" {
		pattern, name = strings.ToUpper(pattern), strings.ToUpper(name)
	}
	matched, err := path.Match(pattern, name)
	return matched && err == nil
}

// searchPath is the PATH in which the program of a process is looked up: its own, or
// ours if it has none.
func (o *Options) searchPath(env []string) string {
	for _, entry := range env {
		if name, value, _ := strings.Cut(entry, "="); matchesVariable("PATH", name) {
			return value
		}
	}
	ours, _ := o.Getenv("PATH")
	return ours
}
