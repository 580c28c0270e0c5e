package launch

import (
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
	if !p.Active() {
		cmd := exec.Command(program.Path, program.Args[1:]...)
		cmd.Args[0], cmd.Env, cmd.Dir = program.Args[0], program.Env, program.Dir
		return &Command{Cmd: cmd, name: p.Name}, nil
	}
	if err := l.check(p); err != nil {
		return nil, err
	}
	private, err := l.privateFolders(p.Name)
	if err != nil {
		return nil, err
	}
	c := &Command{name: p.Name, policy: l.policy(p, program, private), observe: l.observer(p)}
	env := private.environment(program.Env, p.Level, c.tmp(private))
	if p.Level == profile.Strict && l.Gateway != nil {
		if env, err = c.addGateway(l.Gateway(p), env); err != nil {
			return nil, err
		}
	}
	c.Cmd = exec.Command(l.executable(), confine.Args()...)
	c.Env, c.Dir = env, program.Dir
	c.SysProcAttr = c.policy.Attributes()
	return c, nil
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
		Program: program.Path, Args: program.Args, Dir: program.Dir, Home: private.home,
		Namespaces: support.Namespaces == "", Landlock: support.Landlock > 0, Seccomp: support.Seccomp == "",
		OwnRoot: strict, Exec: p.Exec || !strict, Sockets: p.Sockets || !strict, Limits: p.Limits,
		Hide:    slices.Concat(profile.Secrets(l.Home, os.Getuid()), l.Hide),
		Read:    slices.Concat(l.programPaths(program), p.Read),
		Write:   slices.Concat([]string{private.home, private.cache, private.tmp}, p.Write),
		Network: confine.HostNetwork,
	}
	if strict {
		policy.Network = confine.NoNetwork
		policy.Read = append(systemPaths(), policy.Read...)
		if program.Dir != "" {
			policy.Read = append(policy.Read, program.Dir)
		}
	}
	if policy.Dir == "" {
		policy.Dir, _ = os.Getwd()
	}
	if l.Refused != nil {
		policy.Note = confine.NoteRefusals
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

// addGateway makes the gateway reachable for the program.
func (c *Command) addGateway(gateway Gateway, env []string) ([]string, error) {
	c.gateway, c.policy.Network, c.policy.Port = gateway, confine.GatewayNetwork, gatewayPort
	if !c.policy.Namespaces {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, fault.Wrap(fault.Unavailable, err, "sandbox: gateway of %s", c.name)
		}
		c.shared, c.policy.Port = listener, listener.Addr().(*net.TCPAddr).Port
	}
	c.policy.Read = append(c.policy.Read, gateway.Files()...)
	set := map[string]string{}
	for _, entry := range gateway.Env(fmt.Sprintf("127.0.0.1:%d", c.policy.Port)) {
		name, value, _ := strings.Cut(entry, "=")
		set[name] = value
	}
	return withVariables(env, set), nil
}

// observer passes on what a program was refused.
func (l *Launcher) observer(p profile.Profile) func(confine.Note) {
	return func(n confine.Note) {
		if l.Refused != nil && n.Refused && exists(n) {
			l.Refused(profile.Refusal{Time: time.Now(), Name: p.Name, Action: n.Action, Object: n.Object})
		}
	}
}

// exists reports whether what a note is about exists outside the sandbox, or could be
// made: programs look for many files that nobody has.
func exists(n confine.Note) bool {
	path := n.Object
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
		return c.Cmd.Start()
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
		ours.Close()
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
	defer c.control.Close()
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
			listener.Close()
		}
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
