package launch

import (
	"fmt"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// Support is what this computer can do for a sandbox. The texts are causes; empty means
// that it works.
type Support struct {
	System     string // the operating system has no sandbox at all
	Namespaces string // an own root, processes and network
	Landlock   int    // version of the kernel's Landlock; 0 if it has none
	Seccomp    string // the filter of system calls
}

// Missing says what a sandbox cannot do here, one sentence each.
func (s Support) Missing() (lines []string) {
	if s.System != "" {
		return []string{s.System}
	}
	if s.Namespaces != "" {
		lines = append(lines, "no namespaces ("+s.Namespaces+"): programs see other processes and can stat and chmod files outside")
	}
	switch {
	case s.Landlock == 0 && s.Namespaces != "":
		lines = append(lines, "no Landlock in this kernel: files cannot be protected")
	case s.Landlock == 0:
		lines = append(lines, "no Landlock in this kernel: files are protected by mounts alone")
	case s.Landlock < 4 && s.Namespaces != "":
		lines = append(lines, fmt.Sprintf("Landlock version %d: TCP cannot be limited", s.Landlock))
	case s.Landlock < 6:
		lines = append(lines, fmt.Sprintf("Landlock version %d: abstract Unix sockets are protected by namespaces alone", s.Landlock))
	}
	if s.Seccomp != "" {
		lines = append(lines, "no filter of system calls ("+s.Seccomp+")")
	}
	return lines
}

// Enough reports whether a level can be had at all: strict is refused where its files or
// its network would be open.
func (s Support) enough(level profile.Level) bool {
	switch {
	case s.System != "":
		return false
	case s.Namespaces == "":
		return true
	case level == profile.Strict:
		return s.Landlock >= 4 && s.Seccomp == ""
	}
	return s.Landlock > 0
}

// Support is what this computer can do. It is found out once, by doing it.
func (l *Launcher) Support() Support {
	l.probe.Do(func() { l.support = l.examine() })
	return l.support
}

// check refuses a profile that cannot be had here.
func (l *Launcher) check(p profile.Profile) error {
	support := l.Support()
	missing := support.Missing()
	if len(missing) == 0 || support.enough(p.Level) && !p.Require {
		return nil
	}
	return fault.New(fault.Unavailable, "the sandbox of %s is not possible here: %s", p.Name, strings.Join(missing, "; ")).
		WithHint("sandbox = \"off\" starts it without; luanette doctor and docs/sandbox.md say what to do")
}
