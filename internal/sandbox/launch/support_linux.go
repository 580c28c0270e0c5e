package launch

import (
	"github.com/luanette/luanette/internal/sandbox/confine"
)

// examine starts a sandbox that ends before its program, with and without namespaces.
func (l *Launcher) examine() Support {
	s := Support{Landlock: confine.LandlockVersion(), Seccomp: confine.FilterSupport()}
	base := confine.Policy{Probe: true, OwnRoot: true, Network: confine.NoNetwork, Home: "/", Landlock: s.Landlock > 0, Read: []string{"/usr"}}
	spaced := base
	spaced.Namespaces = true
	if err := l.try(&spaced); err != nil {
		s.Namespaces = err.Error()
	}
	if s.Seccomp == "" {
		base.Seccomp = true
		if err := l.try(&base); err != nil {
			s.Seccomp = err.Error()
		}
	}
	return s
}

func (l *Launcher) try(p *confine.Policy) error {
	c := &Command{name: "probe", policy: p, observe: func(confine.Note) {}, Cmd: l.first()}
	c.Env, c.SysProcAttr = []string{}, p.Attributes()
	if err := c.begin(); err != nil {
		return err
	}
	defer func() { _ = c.control.Close() }()
	return c.Cmd.Wait()
}
