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
	Cgroup     string // limits of processor time, and of memory that the kernel enforces
}

// Missing says what a sandbox cannot do here, one sentence each.
func (s Support) Missing() (lines []string) {
	if s.System != "" {
		return []string{s.System}
	}
	if s.Namespaces != "" {
		lines = append(lines, "no namespaces ("+s.Namespaces+"): programs see other processes, can stat and chmod files outside, and have no network if they do not use HTTPS_PROXY")
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

// LimitedBy says how the limits of programs are enforced.
func (s Support) LimitedBy() string {
	if s.Cgroup != "" {
		return "memory is looked at every second, and cpus cannot be limited (" + s.Cgroup + ")"
	}
	return "memory and processors are limited by cgroups"
}

// enough reports whether a level can be had: strict is refused where its files or its
// network would be open.
func (s Support) enough(level profile.Level) bool {
	if level == profile.Strict {
		return s.System == "" && (s.Namespaces == "" || s.Landlock >= 4 && s.Seccomp == "")
	}
	return true
}

// any reports whether anything can be limited.
func (s Support) any() bool {
	return s.System == "" && (s.Namespaces == "" || s.Landlock > 0 || s.Seccomp == "")
}

// Support is what this computer can do. It is found out once, by doing it.
func (l *Launcher) Support() Support {
	l.probe.Do(func() {
		l.support = l.examine()
		var err error
		if l.groups, err = findCgroups("/"); err != nil {
			l.support.Cgroup = err.Error()
		}
	})
	return l.support
}

// check refuses a profile that cannot be had here. What is missing of one that can is
// logged.
func (l *Launcher) check(p profile.Profile) error {
	support := l.Support()
	lines := support.Missing()
	if p.Limits.CPU > 0 && support.Cgroup != "" {
		lines = append(lines, "cpus cannot be limited ("+support.Cgroup+")")
	}
	missing := strings.Join(lines, "; ")
	switch {
	case missing == "":
		return nil
	case support.enough(p.Level) && !p.Require:
		if l.Log != nil {
			l.Log.Warn("the sandbox is incomplete", "program", p.Name, "level", string(p.Level), "missing", missing)
		}
		return nil
	}
	return fault.New(fault.Unavailable, "the sandbox of %s is not possible here: %s", p.Name, missing).
		WithHint("sandbox = \"off\" starts it without; luanette doctor and docs/sandbox.md say what to do")
}
