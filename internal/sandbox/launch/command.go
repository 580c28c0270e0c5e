package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/sandbox/confine"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// Command is a program that is ready to be started. Its streams and attributes may be set
// as those of an exec.Cmd; Start, Wait and Run must be those of Command.
type Command struct {
	*exec.Cmd

	// Refused is told what the program was refused, while it runs; nil: nobody. It must
	// not block.
	Refused func(profile.Refusal)

	name     string
	policy   *confine.Policy // nil: it runs as it is
	observe  func(confine.Note)
	gateway  Gateway
	launcher *Launcher    // of the gateway
	starter  *Launcher    // knows that the program runs; nil: nobody does
	shared   net.Listener // where the program has no network of its own
	control  *net.UnixConn
	served   sync.WaitGroup
	sockets  []io.Closer // of the gateway; closed with the program's end
	groups   *cgroups    // nil: there are none
	group    *cgroup     // of the program; nil: it is in ours
}

// Command prepares a program to be started inside a profile. At level Off, or without a
// launcher, it starts as it is.
func (l *Launcher) Command(p profile.Profile, program Program) (*Command, error) {
	c, err := l.command(p, program)
	if err == nil {
		c.starter = l
	}
	return c, err
}

func (l *Launcher) command(p profile.Profile, program Program) (*Command, error) {
	if trace, is := l.traceOf(p.Name); is {
		return l.traced(trace, p, program)
	}
	switch {
	case !p.Active() && len(p.Credentials) == 0:
		return plain(p, program), nil
	case l == nil:
		return nil, fault.New(fault.Unavailable, "the sandbox of %s is not possible here: nothing starts sandboxes", p.Name)
	case !p.Active():
		return l.withGateway(plain(p, program), p)
	}
	if _, _, is := p.Level.Container(); is {
		return l.container(p, program)
	}
	if err := l.check(p); err != nil {
		return nil, err
	}
	if !l.Support().any() { // check has said so
		return l.withGateway(plain(p, program), p)
	}
	private, err := l.privateFolders(p.Name)
	if err != nil {
		return nil, err
	}
	l.link(private, p)
	l.forget(p.Name)
	c := &Command{name: p.Name, policy: l.policy(p, program, private), groups: l.groups}
	c.observe = l.observer(c, p)
	c.Cmd = l.first()
	c.Env, c.Dir = private.environment(program.Env, p.Level, c.tmp(private)), program.Dir
	if c, err = l.withGateway(c, p); err != nil {
		return nil, err
	}
	c.SysProcAttr = c.policy.Attributes()
	return c, nil
}

// CommandContext is Command for a program that is killed when ctx ends.
func (l *Launcher) CommandContext(ctx context.Context, p profile.Profile, program Program) (*Command, error) {
	c, err := l.Command(p, program)
	if err != nil {
		return nil, err
	}
	bound := exec.CommandContext(ctx, c.Path) // its Cancel kills the process
	if c.policy != nil {
		bound.Cancel = func() error { c.End(); return nil }
	}
	bound.Path, bound.Args, bound.Env, bound.Dir, bound.SysProcAttr = c.Path, c.Args, c.Env, c.Dir, c.SysProcAttr
	bound.WaitDelay = time.Second // for the streams that a grandchild keeps open
	c.Cmd = bound
	return c, nil
}

// plain is a program without a sandbox.
func plain(p profile.Profile, program Program) *Command {
	cmd := exec.Command(program.Path, program.Args[1:]...)
	cmd.Args[0], cmd.Env, cmd.Dir = program.Args[0], program.Env, program.Dir
	return &Command{Cmd: cmd, name: p.Name}
}

// first is the first process of a sandbox.
func (l *Launcher) first() *exec.Cmd {
	cmd := exec.Command(l.executable(), confine.Args()...)
	cmd.Args[0] = os.Args[0] // programs with several names know themselves by it
	return cmd
}

func (l *Launcher) executable() string {
	if l.Executable != "" {
		return l.Executable
	}
	return "/proc/self/exe"
}

// policy is what the child process does for a profile.
func (l *Launcher) policy(p profile.Profile, program Program, private folders) *confine.Policy {
	support := l.Support()
	strict := p.Level == profile.Strict
	policy := &confine.Policy{
		Program: program.Path, Args: program.Args, Dir: program.dir(), Home: private.home,
		Namespaces: support.Namespaces == "", Landlock: support.Landlock > 0, Seccomp: support.Seccomp == "",
		OwnRoot: strict, Exec: p.Exec || !strict, Sockets: p.Sockets || !strict, Limits: confine.Limits(p.Limits),
		Hide:    slices.Concat(profile.Secrets(l.Home, os.Getuid()), l.Hide),
		Read:    slices.Concat(l.programPaths(program), p.Read),
		Write:   slices.Concat([]string{private.home, private.cache, private.tmp}, p.Write),
		Private: []string{private.home, private.cache, private.tmp}, Cgroup: l.groups != nil,
		Network: confine.HostNetwork, Note: confine.NoteRefusals,
	}
	if strict {
		policy.Network = confine.NoNetwork
		policy.Read = append(systemPaths(), policy.Read...)
	}
	// The working folder may be in /tmp, of which a sandbox has its own. Programs such as
	// npx look for packages there.
	if dir := program.dir(); program.Dir != "" || !strict && !l.tooWide(dir) {
		policy.Read = append(policy.Read, dir)
	}
	return policy
}

// tmp is the program's folder for temporary files: a /tmp of its own where mounts are
// possible.
func (c *Command) tmp(private folders) string {
	if c.policy.Namespaces {
		return "/tmp"
	}
	return private.tmp
}

// Start starts the program. When it returns nil, the program runs inside its limits.
func (c *Command) Start() error {
	if c.gateway != nil {
		c.launcher.isRunning(c, true)
	}
	if c.policy == nil {
		if err := c.starter.start(c); err != nil {
			c.closeGateway()
			return err
		}
		c.serveShared()
		return nil
	}
	if err := c.begin(); err != nil {
		c.closeGateway()
		return fault.Wrap(fault.Unavailable, err, "sandbox of %s", c.name).WithHint("luanette doctor shows what the sandbox can do here; docs/sandbox.md")
	}
	c.serveShared()
	c.served.Go(c.receiveNotes)
	return nil
}

// begin starts the first process and returns when it has started the program. After an
// error nothing of it is left.
func (c *Command) begin() error {
	ours, theirs, err := confine.NewControl()
	if err != nil {
		return err
	}
	c.ExtraFiles, c.control = []*os.File{theirs}, ours
	if err = c.enterGroup(); err == nil {
		err = c.starter.start(c)
	}
	theirs.Close()
	if err == nil {
		if err = c.handOver(); err != nil {
			_ = c.Process.Kill()
			_ = c.starter.wait(c)
		}
	}
	if err != nil {
		_ = ours.Close()
		c.leaveGroup()
	}
	return err
}

// enterGroup lets the program start in a cgroup of its own.
func (c *Command) enterGroup() (err error) {
	if c.groups == nil {
		return nil
	}
	if c.group, err = c.groups.group(c.name, c.policy.Limits); err == nil {
		c.group.startIn(c.SysProcAttr)
	}
	return err
}

// leaveGroup notes which limits were reached, and ends what is left of the program.
func (c *Command) leaveGroup() {
	if c.group == nil {
		return
	}
	for _, note := range c.group.exceeded() {
		c.observe(note)
	}
	c.group.end()
	c.group = nil
}

// handOver sends the policy and waits until the program is started.
func (c *Command) handOver() error {
	if err := c.policy.Pass(c.control); err != nil {
		return fmt.Errorf("send policy: %w", err)
	}
	for {
		m, attached, err := confine.Next(c.control)
		switch {
		case errors.Is(err, io.EOF):
			return errors.New("its first process ended")
		case err != nil:
			return err
		case attached >= 0:
			if err := c.serve(m.Kind, os.NewFile(uintptr(attached), m.Kind)); err != nil {
				return err
			}
		case m.Kind == confine.Failed:
			return errors.New(m.Error)
		case m.Kind == confine.Started:
			return nil
		default:
			c.passOn(m)
		}
	}
}

// End ends the program with everything that it started, without waiting. It is better
// than to kill the first process of a sandbox: without a PID namespace, that process
// alone finds those that left the program's group.
func (c *Command) End() {
	switch {
	case c.control != nil:
		_ = c.control.CloseWrite() // the first process sees it
	case c.Process != nil:
		_ = c.Process.Kill()
	}
}

// Wait waits for the program's end, and that of its gateway.
func (c *Command) Wait() error {
	err := c.starter.wait(c)
	c.leaveGroup()
	c.closeGateway()
	return err
}

// Run starts the program and waits for its end.
func (c *Command) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// systemPaths are what every program needs to start: libraries, certificates, names.
func systemPaths() []string {
	paths := []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store", "/gnu/store"}
	for _, name := range []string{
		"alternatives", "ca-certificates", "ca-certificates.conf", "crypto-policies", "fonts", "gai.conf", "group", "host.conf", "hostname", "hosts",
		"java", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias", "localtime", "machine-id", "mime.types", "nsswitch.conf", "os-release",
		"passwd", "pki/ca-trust", "pki/tls/certs", "pki/tls/cert.pem", "protocols", "resolv.conf", "services", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf",
		"terminfo", "timezone",
	} {
		paths = append(paths, "/etc/"+name)
	}
	return paths
}

// programPaths are the files of a program: itself, its runtime, and the package of each
// file among its arguments.
func (l *Launcher) programPaths(p Program) []string {
	paths := l.packageOf(p.Path)
	for _, arg := range p.Args[min(1, len(p.Args)):] {
		if strings.HasPrefix(arg, "-") {
			_, arg, _ = strings.Cut(arg, "=")
		}
		if arg == "" {
			continue
		}
		if !filepath.IsAbs(arg) {
			arg = filepath.Join(p.dir(), arg)
		}
		if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() && filepath.IsAbs(arg) {
			paths = append(paths, l.packageOf(arg)...)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// dir is the working folder.
func (p Program) dir() string {
	if p.Dir == "" {
		folder, _ := os.Getwd() // without it, no relative path is found
		return folder
	}
	return p.Dir
}

// packageOf is a file with the folder of the package that it belongs to, as it is named
// and where its symbolic links lead to.
func (l *Launcher) packageOf(file string) []string {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil
	}
	paths := []string{file, l.packageRoot(file)}
	if real, err := filepath.EvalSymlinks(file); err == nil && real != file {
		paths = append(paths, real, l.packageRoot(real))
	}
	return slices.DeleteFunc(paths, func(path string) bool { return path == "" })
}

// packageRoot is the folder of a file's package; empty if the file is on its own.
func (l *Launcher) packageRoot(file string) string {
	if at := strings.Index(file, "/node_modules/"); at >= 0 {
		return file[:at+len("/node_modules")]
	}
	parent := filepath.Dir(file)
	for folder := parent; !l.tooWide(folder); folder = filepath.Dir(folder) {
		for _, sign := range []string{"package.json", "pyvenv.cfg", "pyproject.toml", "deno.json"} {
			if _, err := os.Stat(filepath.Join(folder, sign)); err == nil {
				return folder
			}
		}
	}
	prefix := filepath.Dir(parent) // of an installation such as ~/.nvm/versions/node/v22
	if filepath.Base(parent) == "bin" && !l.tooWide(prefix) && filepath.Base(prefix) != ".local" {
		return prefix
	}
	if l.tooWide(parent) {
		return ""
	}
	return parent
}

// tooWide reports whether a folder holds more than programs.
func (l *Launcher) tooWide(folder string) bool {
	if folder == l.Home || folder == filepath.Dir(l.Home) || folder == os.TempDir() || strings.Count(folder, "/") < 2 {
		return true
	}
	return slices.Contains([]string{"/usr/bin", "/usr/sbin", "/usr/local", "/usr/local/bin", "/var/tmp"}, folder)
}
