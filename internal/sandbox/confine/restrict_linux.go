package confine

import (
	"golang.org/x/sys/unix"
)

// restrict takes away from this thread what the program may not have. The order matters:
// capabilities before no_new_privs, Landlock before the filter that would refuse it.
func (p *Policy) restrict() (*watcher, error) {
	rules, err := p.landlockRules()
	if err != nil {
		return nil, step("Landlock", err)
	}
	if !p.Namespaces {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	if err := step("limits", p.limit()); err != nil {
		return nil, err
	}
	if err := step("capabilities", dropCapabilities()); err != nil {
		return nil, err
	}
	if err := step("no_new_privs", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); err != nil {
		return nil, err
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil { // the program cannot look into this process
		return nil, step("dumpable", err)
	}
	if err := step("descriptors", unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)); err != nil {
		return nil, err
	}
	if err := step("Landlock", rules.enforce()); err != nil {
		return nil, err
	}
	if !p.Seccomp {
		return nil, nil // nothing is watched
	}
	watch, err := p.filter()
	return watch, step("seccomp", err)
}

// dropCapabilities drops all of this thread. Without the bounding set, root would get
// them back when it executes a program.
func dropCapabilities() error {
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	for capability := range uintptr(64) {
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}
