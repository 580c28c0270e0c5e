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

// gatewayPort is the gateway's port in the network of a program, which has nothing else.
const gatewayPort = 3128

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
	shared   net.Listener // where the program has no network of its own
	control  *net.UnixConn
	served   sync.WaitGroup
	listener net.Listener // closed with the program's end
}

// Command prepares a program to be started inside a profile. At level Off, or without a
// launcher, it starts as it is.
func (l *Launcher) Command(p profile.Profile, program Program) (*Command, error) {
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
	c := &Command{name: p.Name, policy: l.policy(p, program, private)}
	c.observe = l.observer(c, p)
	c.Cmd = l.first()
	c.Env, c.Dir = private.environment(program.Env, p.Level, c.tmp(private)), program.Dir
	if c, err = l.withGateway(c, p); err != nil {
		return nil, err
	}
	c.SysProcAttr = c.policy.Attributes()
	return c, nil
}

// withGateway gives a program its gateway: at level Strict the only way out, otherwise
// what puts its credentials into requests, and what tells a trace the names of hosts.
func (l *Launcher) withGateway(c *Command, p profile.Profile) (_ *Command, err error) {
	if _, traced := l.traceOf(p.Name); l.Gateway == nil || p.Level != profile.Strict && len(p.Credentials) == 0 && !traced {
		return c, nil
	}
	if c.gateway, err = l.Gateway(p); err != nil {
		return nil, err
	}
	if err := c.addGateway(); err != nil {
		c.gateway.Close()
		return nil, err
	}
	return c, nil
}

// CommandContext is Command for a program that is killed when ctx ends.
func (l *Launcher) CommandContext(ctx context.Context, p profile.Profile, program Program) (*Command, error) {
	c, err := l.Command(p, program)
	if err != nil {
		return nil, err
	}
	bound := exec.CommandContext(ctx, c.Path) // its Cancel kills the process
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
		OwnRoot: strict, Exec: p.Exec || !strict, Sockets: p.Sockets || !strict, Limits: p.Limits,
		Hide:    slices.Concat(profile.Secrets(l.Home, os.Getuid()), l.Hide),
		Read:    slices.Concat(l.programPaths(program), p.Read),
		Write:   slices.Concat([]string{private.home, private.cache, private.tmp}, p.Write),
		Network: confine.HostNetwork, Note: confine.NoteRefusals,
	}
	if strict {
		policy.Network = confine.NoNetwork
		policy.Read = append(systemPaths(), policy.Read...)
	}
	if program.Dir != "" { // it may be in /tmp, of which a sandbox has its own
		policy.Read = append(policy.Read, program.Dir)
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

// addGateway makes the gateway reachable for the program: at a port of its own network, or
// else at one of the computer.
func (c *Command) addGateway() error {
	port := gatewayPort
	if c.policy == nil || !c.policy.Namespaces || c.policy.Network == confine.HostNetwork {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return fault.Wrap(fault.Unavailable, err, "sandbox: gateway of %s", c.name)
		}
		c.shared, port = listener, listener.Addr().(*net.TCPAddr).Port
	}
	if c.policy != nil {
		c.policy.Read = append(c.policy.Read, c.gateway.Files()...)
		if c.policy.Network != confine.HostNetwork {
			c.policy.Network, c.policy.Port = confine.GatewayNetwork, port
		}
	}
	set := map[string]string{}
	for _, entry := range c.gateway.Env(fmt.Sprintf("127.0.0.1:%d", port)) {
		name, value, _ := strings.Cut(entry, "=")
		set[name] = value
	}
	c.Env = withVariables(c.Env, set)
	return nil
}

// observer passes on what a program was refused.
func (l *Launcher) observer(c *Command, p profile.Profile) func(confine.Note) {
	return func(n confine.Note) {
		if !n.Refused || !exists(n) {
			return
		}
		r := profile.NewRefusal(time.Now(), p, n.Action, n.Object)
		l.keep(r)
		for _, told := range []func(profile.Refusal){l.Refused, c.Refused} {
			if told != nil {
				told(r)
			}
		}
	}
}

// exists reports whether what a note is about exists outside the sandbox, or could be
// made: programs look for many files that nobody has.
func exists(n confine.Note) bool {
	path := n.Object
	if strings.HasPrefix(path, "/sys/") { // runtimes look there for the computer's size, and do without
		return false
	}
	switch n.Action {
	case profile.Reading, profile.Executing:
	case profile.Writing:
		path = filepath.Dir(path)
	default:
		return true
	}
	_, err := os.Lstat(path)
	return err == nil || !errors.Is(err, os.ErrNotExist)
}

// Start starts the program. When it returns nil, the program runs inside its limits.
func (c *Command) Start() error {
	if c.policy == nil {
		err := c.Cmd.Start()
		if err != nil {
			c.closeListeners()
			return err
		}
		c.serveShared()
		return nil
	}
	if err := c.begin(); err != nil {
		c.closeListeners()
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
	err = c.Cmd.Start()
	theirs.Close()
	if err == nil {
		if err = c.handOver(); err != nil {
			_ = c.Process.Kill()
			_ = c.Cmd.Wait()
		}
	}
	if err != nil {
		_ = ours.Close()
	}
	return err
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
		case m.Kind == confine.Listener:
			if err := c.serve(attached); err != nil {
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

// serve runs the gateway on a listener that the program's side has made.
func (c *Command) serve(fd int) error {
	if fd < 0 || c.gateway == nil || c.listener != nil {
		return errors.New("a listener was expected")
	}
	file := os.NewFile(uintptr(fd), "listener")
	defer file.Close()
	listener, err := net.FileListener(file)
	if err != nil {
		return fmt.Errorf("listener: %w", err)
	}
	c.listener = listener
	c.served.Go(func() { c.gateway.Serve(listener, false) })
	return nil
}

func (c *Command) serveShared() {
	if c.shared != nil {
		c.served.Go(func() { c.gateway.Serve(c.shared, true) })
	}
}

// receiveNotes passes notes on until the first process ends.
func (c *Command) receiveNotes() {
	defer func() { _ = c.control.Close() }()
	for {
		m, _, err := confine.Next(c.control)
		if err != nil {
			return
		}
		c.passOn(m)
	}
}

func (c *Command) passOn(m confine.Message) {
	for _, note := range m.Notes {
		c.observe(note)
	}
}

func (c *Command) closeListeners() {
	for _, listener := range []net.Listener{c.listener, c.shared} {
		if listener != nil {
			_ = listener.Close()
		}
	}
	if c.gateway != nil {
		c.gateway.Close()
	}
	c.served.Wait()
}

// Wait waits for the program's end, and that of its gateway.
func (c *Command) Wait() error {
	err := c.Cmd.Wait()
	c.closeListeners()
	return err
}

// Run starts the program and waits for its end.
func (c *Command) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}
