package confine

import "golang.org/x/sys/unix"

// computerMemory is the size of the computer's memory.
func computerMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 2 * mostMemory
	}
	return int64(info.Totalram) * int64(info.Unit) // its type depends on the processor
}

// limit sets the limits of this process, which the program inherits. They hold for each of
// its processes; for all together there is the cgroup, or else the guard.
func (p *Policy) limit() error {
	l := p.Limits
	set := map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: DefaultFiles, unix.RLIMIT_NPROC: uint64(l.MaxTasks())}
	if l.Files > 0 {
		set[unix.RLIMIT_NOFILE] = uint64(l.Files)
	}
	if l.Time > 0 {
		set[unix.RLIMIT_CPU] = uint64(max(1, l.Time.Seconds()))
	}
	for resource, most := range set {
		var now unix.Rlimit
		if err := unix.Getrlimit(resource, &now); err != nil {
			return err
		}
		most = min(most, now.Max) // it may be lower already, and cannot be raised
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			return err
		}
	}
	return nil
}

// limitMemory keeps a process of the program from growing faster than the guard looks.
// What is reserved but not used counts, too. It is not for this process, which has more
// reserved.
func (p *Policy) limitMemory(pid int) {
	if p.Limits.Memory > 0 && !p.Cgroup {
		most := 2 * uint64(p.Limits.Memory)
		_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most}, nil) // it may have ended already
	}
}
