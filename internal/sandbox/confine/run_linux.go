package confine

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// Exit codes of the first process if the program could not be started.
const exitNotStarted = 126

// A process with Args is the first process of a sandbox, in every program that contains
// this package, and never reaches main. Go initialises the packages of luanette in 35 ms;
// every start of a tool server would wait for that. A package is initialised as soon as
// its imports are, so that this one, with few, is early: see docs/decisions/017.
func init() { //nolint:gochecknoinits // it is in front of every tool server's start
	if slices.Equal(os.Args[1:], Args()) {
		os.Exit(run()) //nolint:forbidigo // this process is started for the sandbox alone
	}
}

// run reads the policy from the control socket, starts the program inside it and waits
// for its end. It returns the exit code of the process.
//
// Only the calling thread is restricted, and the program, which is forked from it. The
// other threads keep what they need to note what the program does.
func run() int {
	runtime.LockOSThread()
	// While the thread forks, the runtime cannot stop it: a collection would wait for the
	// program's first steps, which wait for another thread of ours.
	debug.SetGCPercent(-1)
	if runtime.GOMAXPROCS(0) < 2 {
		runtime.GOMAXPROCS(2)
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP) // the program gets them, too: it is in our group
	unix.CloseOnExec(ControlFile)
	var p Policy
	if err := receive(ControlFile, &p); err != nil {
		fmt.Fprintln(os.Stderr, "luanette sandbox exec: it is started by luanette, not by hand:", err) //nolint:forbidigo // this process has no cmd: it is started for the sandbox alone
		return exitNotStarted
	}
	pid, watch, err := p.start()
	if err != nil {
		var at stepError
		errors.As(err, &at)
		_ = send(ControlFile, Message{Kind: Failed, Step: at.step, Error: err.Error()}, -1)
		return exitNotStarted
	}
	if err := send(ControlFile, Message{Kind: Started}, -1); err != nil || p.Probe {
		return 0
	}
	for fd := range 3 {
		_ = unix.Close(fd) // or the reader of the program's output never sees its end
	}
	debug.SetGCPercent(50)
	go func() { // the other side never writes again: this is its end
		_ = receive(ControlFile, &struct{}{})
		_ = unix.Kill(pid, unix.SIGKILL)
	}()
	go func() {
		note := (&guard{policy: &p}).run()
		_ = send(ControlFile, Message{Kind: Noted, Notes: []Note{note}}, -1)
		_ = unix.Kill(pid, unix.SIGKILL)
	}()
	code := p.reap(pid)
	watch.flush()
	return code
}

// stepError says which step of the start was not possible.
type stepError struct {
	step string
	err  error
}

func (e stepError) Error() string { return e.step + ": " + e.err.Error() }
func (e stepError) Unwrap() error { return e.err }

func step(name string, err error) error {
	if err == nil {
		return nil
	}
	return stepError{name, err}
}

// start restricts this thread and forks the program from it.
func (p *Policy) start() (pid int, watch *watcher, err error) {
	if p.Namespaces {
		if err := p.fillNamespaces(); err != nil {
			return 0, nil, err
		}
	}
	p.enterDir()
	watch, err = p.restrict()
	if err != nil || p.Probe {
		return 0, watch, err
	}
	if watch != nil {
		go watch.run()
	}
	attr := &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, //nolint:forbidigo // the environment is the program's, not ours
		Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	}
	if pid, err = syscall.ForkExec(p.Program, p.Args, attr); err == nil {
		p.limitMemory(pid)
	}
	return pid, watch, step("execute "+p.Program, err)
}

// fillNamespaces fills the new namespaces.
func (p *Policy) fillNamespaces() error {
	if p.Network != HostNetwork {
		if err := step("network", p.fillNetwork()); err != nil {
			return err
		}
	}
	_ = unix.Sethostname([]byte("sandbox"))
	return p.mount()
}

// enterDir goes to the working folder, or home where that is not visible.
func (p *Policy) enterDir() {
	if p.Dir != "" && os.Chdir(p.Dir) == nil {
		return
	}
	if os.Chdir(p.Home) != nil {
		_ = os.Chdir("/")
	}
}

// reap waits for the program and for the processes that it left to us.
func (p *Policy) reap(program int) int {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return exitNotStarted
		case pid == program && !status.Stopped() && !status.Continued():
			p.noteOutlivers()
			p.killRest()
			if status.Signaled() {
				return 128 + int(status.Signal())
			}
			return status.ExitStatus()
		}
	}
}

// noteOutlivers notes processes that left the program's session in order to outlive it.
func (p *Policy) noteOutlivers() {
	if p.Note != NoteNothing && p.outlivers() {
		note := Note{Action: Using, Object: "processes after its end", Refused: true}
		_ = send(ControlFile, Message{Kind: Noted, Notes: []Note{note}}, -1)
	}
}

// killRest ends what the program left running. In a PID namespace the kernel does it at
// our end.
func (p *Policy) killRest() {
	if p.Namespaces {
		return
	}
	for range 1000 { // each round kills one more level of children
		children := childrenOf(os.Getpid())
		for _, pid := range children {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		for range children {
			_, _ = unix.Wait4(-1, nil, 0, nil)
		}
		if len(children) == 0 {
			return
		}
	}
}

// Attributes are those of the process that is to apply the policy. It is in a session of
// its own, whose group has all its processes.
//
// In a new user namespace our own ids stay what they are. An id other than 0 loses its
// capabilities when it executes a program: ambient ones stay.
func (p *Policy) Attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if !p.Namespaces {
		return attr
	}
	attr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	if p.Network != HostNetwork {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_PTRACE, unix.CAP_SETPCAP}
	return attr
}

// LandlockVersion is the kernel's version of Landlock; 0 if it has none.
func LandlockVersion() int { return landlockABI() }

// FilterSupport says why system calls cannot be filtered here; empty if they can.
func FilterSupport() string {
	if auditArch == 0 {
		return "the system calls of " + runtime.GOARCH + " are not known"
	}
	return ""
}

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
