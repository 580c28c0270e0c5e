package confine

import (
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets in the data that a seccomp filter sees.
const (
	offsetCall = 0
	offsetArch = 4
	offsetArgs = 16
)

// What a filter answers.
const (
	allowCall  = unix.SECCOMP_RET_ALLOW
	refuseCall = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	absentCall = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	notifyCall = unix.SECCOMP_RET_USER_NOTIF
)

// program is a BPF program in the making. Between its blocks the accumulator has the
// number of the system call.
type program []unix.SockFilter

func statement(code uint16, k uint32) unix.SockFilter { return unix.SockFilter{Code: code, K: k} }

func load(offset uint32) unix.SockFilter {
	return statement(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset)
}

// argument loads the lower half of an argument of the system call.
func argument(n uint32) unix.SockFilter { return load(offsetArgs + 8*n) }

func answer(value uint32) unix.SockFilter { return statement(unix.BPF_RET|unix.BPF_K, value) }

func jump(operation uint16, k uint32, yes, no int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | operation, K: k, Jt: uint8(yes), Jf: uint8(no)}
}

// on adds what happens at a system call. The block must end in answers.
func (b *program) on(call uint32, block ...unix.SockFilter) {
	*b = append(*b, jump(unix.BPF_JEQ, call, 0, len(block)))
	*b = append(*b, block...)
}

// filter installs the seccomp filter on this thread. The watcher is nil if nothing is to
// be noted, or the kernel cannot.
func (p *Policy) filter() (*watcher, error) {
	watch := p.Note != NoteNothing
	if watch {
		if fd, err := install(p.compile(true), unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV); err == nil {
			return newWatcher(p, fd), nil
		}
		if fd, err := install(p.compile(true), unix.SECCOMP_FILTER_FLAG_NEW_LISTENER); err == nil {
			return newWatcher(p, fd), nil
		}
	}
	_, err := install(p.compile(false), 0)
	return nil, err
}

func install(b program, flags uintptr) (fd int, err error) {
	code := unix.SockFprog{Len: uint16(len(b)), Filter: &b[0]}
	r, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&code)))
	if errno != 0 {
		return -1, errno
	}
	return int(r), nil
}

// compile makes the filter of the policy. With watch, a listener is asked about calls
// that are noted, and answers those that are refused.
func (p *Policy) compile(watch bool) program {
	b := program{
		load(offsetArch), jump(unix.BPF_JEQ, auditArch, 1, 0), answer(unix.SECCOMP_RET_KILL_PROCESS),
		load(offsetCall), jump(unix.BPF_JGE, 0x40000000, 0, 1), answer(absentCall), // calls of x32
	}
	refuse := refuseCall
	if watch {
		refuse = notifyCall
	}
	for _, call := range p.refusedCalls() {
		b.on(call, answer(refuse))
	}
	for _, call := range absentCalls() {
		b.on(call, answer(absentCall)) // callers have another way
	}
	b.clone(watch)
	b.on(unix.SYS_IOCTL, argument(1), jump(unix.BPF_JEQ, unix.TIOCSTI, 1, 0), jump(unix.BPF_JEQ, unix.TIOCLINUX, 0, 1), answer(refuseCall), answer(allowCall))
	b.socket(p.Network == HostNetwork || p.ownGateway(), p.Sockets)
	if watch {
		for call := range p.notedCalls() {
			b.on(call, answer(notifyCall))
		}
	}
	return append(b, answer(allowCall))
}

// clone refuses new namespaces. A watcher counts the others.
func (b *program) clone(watch bool) {
	const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
		unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	other := answer(allowCall)
	if watch {
		other = answer(notifyCall)
		for _, call := range forkCalls() {
			b.on(call, other)
		}
	}
	b.on(unix.SYS_CLONE, argument(0), jump(unix.BPF_JSET, namespaces, 0, 1), answer(refuseCall), other)
}

// socket allows TCP, and the netlink by which programs list their addresses. MPTCP is
// refused since Landlock does not see it, and UDP, unless it cannot leave our network.
func (b *program) socket(udp, local bool) {
	datagrams, unixSockets := answer(refuseCall), answer(refuseCall)
	if udp {
		datagrams = answer(allowCall)
	}
	if local {
		unixSockets = answer(allowCall)
	}
	b.on(unix.SYS_SOCKET, argument(0),
		jump(unix.BPF_JEQ, unix.AF_UNIX, 0, 1), unixSockets,
		jump(unix.BPF_JEQ, unix.AF_NETLINK, 0, 4), argument(2), jump(unix.BPF_JEQ, unix.NETLINK_ROUTE, 0, 1), answer(allowCall), answer(refuseCall),
		jump(unix.BPF_JEQ, unix.AF_INET, 1, 0), jump(unix.BPF_JEQ, unix.AF_INET6, 0, 9),
		argument(1), statement(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, 0xf),
		jump(unix.BPF_JEQ, unix.SOCK_DGRAM, 0, 1), datagrams,
		jump(unix.BPF_JEQ, unix.SOCK_STREAM, 0, 4), argument(2),
		jump(unix.BPF_JEQ, 0, 1, 0), jump(unix.BPF_JEQ, unix.IPPROTO_TCP, 0, 1), answer(allowCall),
		answer(refuseCall))
}

// refusedCalls are the system calls that no tool server needs and that reach beyond the
// process.
func (p *Policy) refusedCalls() []uint32 {
	calls := slices.Concat([]uint32{
		// other processes
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
		unix.SYS_PROCESS_MADVISE, unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
		// mounts and namespaces
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN,
		unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_UNSHARE, unix.SYS_SETNS,
		// parts of the kernel with many faults
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_VMSPLICE,
		// the computer
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_SYSLOG, unix.SYS_ACCT, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME,
		unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_PERSONALITY, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SETHOSTNAME,
		unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP, unix.SYS_NFSSERVCTL,
	}, refusedHere())
	if p.OwnRoot && !p.Exec {
		calls = append(calls, unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET)
	}
	return calls
}

// absentCalls are refused as if the kernel did not know them, so that programs use their
// predecessors, whose arguments a filter can see.
func absentCalls() []uint32 {
	return []uint32{unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER}
}

// access is what a system call does with the path that one of its arguments points to.
type access struct {
	folder int    // argument with the descriptor of the folder; -1 if there is none
	path   int    // argument with the path
	action string // empty: it is in the flags
	flags  int    // argument with the flags of open
}
