package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/sandbox/confine"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// Trace is how programs are traced.
type Trace struct {
	// Write are folders that they may write to, besides those of their profile.
	Write []string
	// Noted is told what they do. It must not block.
	Noted func(profile.Use)
}

// Trace notes what the programs of a profile's name do, from their next start on until
// stop is called. They are started at level Open whatever their profile says, with the
// private home that Strict would give them.
func (l *Launcher) Trace(name string, t Trace) (stop func()) {
	l.tracing.Lock()
	defer l.tracing.Unlock()
	if l.traces == nil {
		l.traces = map[string]Trace{}
	}
	l.traces[name] = t
	return func() {
		l.tracing.Lock()
		defer l.tracing.Unlock()
		delete(l.traces, name)
	}
}

func (l *Launcher) traceOf(name string) (t Trace, is bool) {
	if l == nil {
		return t, false
	}
	l.tracing.Lock()
	defer l.tracing.Unlock()
	t, is = l.traces[name]
	return t, is
}

// traced prepares a program to be started and traced.
func (l *Launcher) traced(t Trace, p profile.Profile, program Program) (*Command, error) {
	if _, _, is := p.Level.Container(); is {
		return nil, fault.New(fault.InvalidParams, "%s runs in a container, which cannot be traced", p.Name)
	}
	if s := l.Support(); s.System != "" || s.Seccomp != "" {
		return nil, fault.New(fault.Unavailable, "what %s does cannot be noted here: %s", p.Name, s.System+s.Seccomp).WithHint("luanette doctor; docs/sandbox.md")
	}
	private, err := l.privateFolders(p.Name)
	if err != nil {
		return nil, err
	}
	p.Level, p.Write = profile.Open, slices.Concat(p.Write, t.Write)
	l.link(private, p)
	l.forget(p.Name)
	c := &Command{name: p.Name, policy: l.policy(p, program, private), groups: l.groups, Cmd: l.first()}
	c.policy.Note = confine.NoteAll
	c.Env, c.Dir = private.environment(program.Env, profile.Strict, c.tmp(private)), program.Dir
	if c.policy.Namespaces && l.Gateway != nil {
		c.policy.Network = confine.NoNetwork // but for the gateway, which knows hosts by their names
	}
	if c, err = l.withGateway(c, p); err != nil {
		return nil, err
	}
	refused := l.observer(c, p)
	base := l.policy(profile.Profile{Name: p.Name, Level: profile.Strict}, program, private)
	c.observe = func(n confine.Note) {
		refused(n)
		started := n.Action == profile.Executing && n.Object == program.Path
		if use, worth := l.use(n, private, p, base); worth && !started && !c.isGateway(n) {
			use.Object = c.named(confine.Note{Action: n.Action, Object: use.Object})
			t.Noted(use)
		}
	}
	c.SysProcAttr = c.policy.Attributes()
	return c, nil
}

// use is a note as a use, if it is worth keeping: what does not exist is not.
func (l *Launcher) use(n confine.Note, private folders, p profile.Profile, base *confine.Policy) (profile.Use, bool) {
	u := profile.Use{Action: n.Action, Object: n.Object, Refused: n.Refused}
	switch n.Action {
	case profile.Connecting:
		path, isUnix := strings.CutPrefix(n.Object, "unix:")
		return u, !isUnix || isSocketFile(path)
	case profile.Calling, profile.Using:
		return u, n.Action == profile.Calling
	}
	if sought := l.sought(n, private); sought != "" {
		return profile.Use{Action: n.Action, Object: sought, Refused: true, Sought: true}, true
	}
	given := slices.ContainsFunc(slices.Concat(p.Read, p.Write), func(folder string) bool { return confine.Below(n.Object, folder) })
	u.Own = base.Owns(n.Object) && !given
	u.Base = base.Allows(n.Action, n.Object) && !given
	if u.Own && confine.Below(n.Object, "/tmp") { // which only the program sees
		return u, true
	}
	return u, exists(n) && !isRepeatedMkdir(n)
}

// isRepeatedMkdir reports whether a note is about mkdir of a folder that is there already,
// as mkdir -p does it.
func isRepeatedMkdir(n confine.Note) bool {
	return n.Refused && n.Action == profile.Writing && isFolder(n.Object)
}

// sought is the path of the user's home that a program looked for in its private one, if
// only the user's has it.
func (l *Launcher) sought(n confine.Note, private folders) string {
	rest, below := strings.CutPrefix(n.Object, private.home+"/")
	if !below || n.Action != profile.Reading || l.Home == "" {
		return ""
	}
	if _, err := os.Lstat(n.Object); err == nil {
		return ""
	}
	path := filepath.Join(l.Home, rest)
	if _, err := os.Lstat(path); err != nil {
		return ""
	}
	return path
}

// isGateway reports whether a note is about a connection to the gateway, which knows more
// about it.
func (c *Command) isGateway(n confine.Note) bool {
	switch {
	case n.Action != profile.Connecting || strings.HasPrefix(n.Object, "unix:"):
		return false
	case c.shared != nil:
		return n.Object == c.shared.Addr().String()
	}
	return c.policy.Network == confine.GatewayNetwork && !n.Refused
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isSocketFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&os.ModeSocket != 0
}
