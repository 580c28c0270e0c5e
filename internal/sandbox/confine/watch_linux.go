package confine

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// notedCalls are the system calls about which the watcher is asked.
func (p *Policy) notedCalls() map[uint32]access {
	calls := map[uint32]access{
		unix.SYS_OPENAT:    {0, 1, "", 2},
		unix.SYS_OPENAT2:   {0, 1, "", 2},
		unix.SYS_EXECVE:    {-1, 0, Executing, 0},
		unix.SYS_EXECVEAT:  {0, 1, Executing, 0},
		unix.SYS_UNLINKAT:  {0, 1, Writing, 0},
		unix.SYS_MKDIRAT:   {0, 1, Writing, 0},
		unix.SYS_RENAMEAT2: {2, 3, Writing, 0},
		unix.SYS_LINKAT:    {2, 3, Writing, 0},
		unix.SYS_SYMLINKAT: {1, 2, Writing, 0},
		unix.SYS_TRUNCATE:  {-1, 0, Writing, 0},
		unix.SYS_CONNECT:   {-1, 1, Connecting, 0},
	}
	maps.Copy(calls, olderCalls())
	if p.Note == NoteAll {
		calls[unix.SYS_MEMFD_CREATE] = access{action: Calling}
	}
	return calls
}

// mostNotes is how many different notes are made of one program. The rest is dropped: a
// program could fill our memory with them.
func (p *Policy) mostNotes() int {
	if p.Note == NoteAll {
		return 20_000
	}
	return 1000
}

// notification and reply are seccomp_notif and seccomp_notif_resp of the kernel.
type notification struct {
	id    uint64
	pid   uint32
	flags uint32
	call  int32
	arch  uint32
	at    uint64
	args  [6]uint64
}

type reply struct {
	id    uint64
	value int64
	err   int32
	flags uint32
}

// watcher answers the kernel's questions about the program's system calls. It refuses
// calls by number only: a path could change between our look and the kernel's. What it
// notes of paths is for people.
type watcher struct {
	policy  *Policy
	fd      int
	calls   map[uint32]access
	refused map[uint32]bool
	forks   map[uint32]bool
	seen    map[Note]bool
	buffer  [unix.PathMax]byte

	outgoing chan Note
	unsent   atomic.Int64
	drained  chan struct{} // signals that unsent was zero
}

func newWatcher(p *Policy, fd int) *watcher {
	w := &watcher{
		policy: p, fd: fd, calls: p.notedCalls(), seen: map[Note]bool{},
		refused: map[uint32]bool{}, forks: map[uint32]bool{unix.SYS_CLONE: true},
		outgoing: make(chan Note, p.mostNotes()), // it never blocks
		drained:  make(chan struct{}, 1),
	}
	for _, call := range p.refusedCalls() {
		w.refused[call] = true
	}
	for _, call := range forkCalls() {
		w.forks[call] = true
	}
	// The waking of one side by the other stays on one processor, which is twice as fast.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	return w
}

// run answers until no process of the program is left.
func (w *watcher) run() {
	runtime.LockOSThread()
	go w.send()
	defer close(w.outgoing)
	for {
		var n notification
		switch _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(w.fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno {
		case 0:
		case unix.EINTR, unix.ENOENT: // ENOENT: the process was killed meanwhile
			continue
		default:
			return
		}
		r := w.answer(&n)
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(w.fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&r)))
	}
}

// answer decides one call, and notes it.
func (w *watcher) answer(n *notification) reply {
	call := uint32(n.call)
	switch {
	case w.refused[call]:
		w.note(Note{Action: Calling, Object: callName(call), Refused: true})
		return reply{id: n.id, err: -int32(unix.EPERM)}
	case w.forks[call]:
		if w.tooMany(n) {
			w.note(ProcessNote(w.policy.Limits.MaxProcesses()))
			return reply{id: n.id, err: -int32(unix.EAGAIN)}
		}
	case call == unix.SYS_CONNECT:
		w.noteAddress(n)
	case call == unix.SYS_MEMFD_CREATE:
		w.note(Note{Action: Calling, Object: callName(call)})
	default:
		w.notePath(n, w.calls[call])
	}
	return reply{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
}

// tooMany reports whether the program has as many processes as it may have, or the
// process as many threads. The kernel's own limit does not hold for root.
func (w *watcher) tooMany(n *notification) bool {
	most := w.policy.Limits.MaxProcesses()
	if uint32(n.call) == unix.SYS_CLONE && n.args[0]&unix.CLONE_THREAD != 0 {
		tasks, _ := os.ReadDir("/proc/" + strconv.Itoa(int(n.pid)) + "/task")
		return len(tasks) >= most
	}
	return len(w.policy.processes()) >= most
}

// notePath notes what a call does with a path.
func (w *watcher) notePath(n *notification, a access) {
	path := w.text(n.pid, n.args[a.path])
	if path == "" {
		return
	}
	action := a.action
	if action == "" {
		action = w.openAction(n, a)
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(folderOf(n, a.folder), path)
	}
	path = filepath.Clean(path)
	w.note(Note{Action: action, Object: path, Refused: !w.policy.Allows(action, path)})
}

// openAction is what the flags of an open say.
func (w *watcher) openAction(n *notification, a access) string {
	flags := n.args[a.flags]
	if uint32(n.call) == unix.SYS_OPENAT2 { // they are in a struct
		var how [8]byte
		if w.read(n.pid, n.args[a.flags], how[:]) != len(how) {
			return Reading
		}
		flags = binary.NativeEndian.Uint64(how[:])
	}
	if flags&(unix.O_WRONLY|unix.O_RDWR|unix.O_CREAT|unix.O_TRUNC) != 0 {
		return Writing
	}
	return Reading
}

// folderOf is the folder that a relative path begins at.
func folderOf(n *notification, argument int) string {
	process := "/proc/" + strconv.Itoa(int(n.pid))
	link := process + "/cwd"
	if argument >= 0 && int32(n.args[argument]) != unix.AT_FDCWD {
		link = process + "/fd/" + strconv.Itoa(int(int32(n.args[argument])))
	}
	folder, err := os.Readlink(link)
	if err != nil {
		return "?"
	}
	return folder
}

// noteAddress notes what a socket is connected to.
func (w *watcher) noteAddress(n *notification) {
	length := min(int(n.args[2]), unix.SizeofSockaddrUnix)
	if length < 4 || w.read(n.pid, n.args[1], w.buffer[:length]) != length {
		return
	}
	address := w.buffer[:length]
	if binary.NativeEndian.Uint16(address) == unix.AF_UNIX {
		w.note(Note{Action: Connecting, Object: "unix:" + cString(address[2:]), Refused: !w.policy.Sockets})
		return
	}
	if to := hostAddress(address); to.Port() != 0 {
		ip := to.Addr().Unmap()
		w.note(Note{Action: Connecting, Object: to.String(), Refused: !w.policy.reaches(int(to.Port()), ip.IsLoopback())})
	}
}

// hostAddress reads the address of a host; zero if it is none.
func hostAddress(address []byte) netip.AddrPort {
	var ip netip.Addr
	switch family := binary.NativeEndian.Uint16(address); {
	case family == unix.AF_INET && len(address) >= 8:
		ip, _ = netip.AddrFromSlice(address[4:8])
	case family == unix.AF_INET6 && len(address) >= 24:
		ip, _ = netip.AddrFromSlice(address[8:24])
	default:
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(address[2:]))
}

// note passes a note on, once.
func (w *watcher) note(n Note) {
	if !n.Refused && w.policy.Note != NoteAll || w.seen[n] || len(w.seen) >= w.policy.mostNotes() {
		return
	}
	w.seen[n] = true
	if n.Refused { // the report is on its way before the program can say that it failed
		_ = send(ControlFile, Message{Kind: Noted, Notes: []Note{n}}, -1) // without the other side nobody reads it
		return
	}
	w.unsent.Add(1)
	w.outgoing <- n
}

// flush waits until all notes are sent.
func (w *watcher) flush() {
	for w != nil && w.unsent.Load() > 0 {
		<-w.drained
	}
}

// send sends notes, as many as there are at a time.
func (w *watcher) send() {
	for n := range w.outgoing {
		notes := []Note{n}
		for len(w.outgoing) > 0 && len(notes) < 20 {
			notes = append(notes, <-w.outgoing)
		}
		_ = send(ControlFile, Message{Kind: Noted, Notes: notes}, -1) // without the other side nobody reads them
		if w.unsent.Add(-int64(len(notes))) == 0 {
			select {
			case w.drained <- struct{}{}:
			default:
			}
		}
	}
}

// text reads a string of a process.
func (w *watcher) text(pid uint32, at uint64) string {
	// Memory is readable by pages: a read that crosses into one that is absent is cut.
	n := w.read(pid, at, w.buffer[:256])
	if n == 256 && cString(w.buffer[:n]) == string(w.buffer[:n]) {
		n = w.read(pid, at, w.buffer[:])
	}
	return cString(w.buffer[:max(n, 0)])
}

func (w *watcher) read(pid uint32, at uint64, into []byte) int {
	page := uint64(os.Getpagesize())
	remote := []unix.RemoteIovec{{Base: uintptr(at), Len: len(into)}}
	if first := page - at%page; first < uint64(len(into)) {
		remote = []unix.RemoteIovec{{Base: uintptr(at), Len: int(first)}, {Base: uintptr(at + first), Len: len(into) - int(first)}}
	}
	local := []unix.Iovec{{Base: &into[0]}}
	local[0].SetLen(len(into))
	n, err := unix.ProcessVMReadv(int(pid), local, remote, 0)
	if err != nil {
		return 0
	}
	return n
}

// cString is the text before the first zero byte.
func cString(data []byte) string {
	for i, b := range data {
		if b == 0 {
			return string(data[:i])
		}
	}
	return string(data)
}

func callName(call uint32) string {
	if name := callNames()[call]; name != "" {
		return name
	}
	return fmt.Sprintf("system call %d", call)
}

// callNames are the names of the refused calls that programs make by mistake or on
// purpose.
func callNames() map[uint32]string {
	return map[uint32]string{
		unix.SYS_PTRACE: "ptrace", unix.SYS_PROCESS_VM_READV: "process_vm_readv", unix.SYS_PROCESS_VM_WRITEV: "process_vm_writev",
		unix.SYS_PIDFD_GETFD: "pidfd_getfd", unix.SYS_MOUNT: "mount", unix.SYS_UMOUNT2: "umount", unix.SYS_PIVOT_ROOT: "pivot_root",
		unix.SYS_CHROOT: "chroot", unix.SYS_UNSHARE: "unshare", unix.SYS_SETNS: "setns", unix.SYS_BPF: "bpf",
		unix.SYS_PERF_EVENT_OPEN: "perf_event_open", unix.SYS_USERFAULTFD: "userfaultfd", unix.SYS_KEYCTL: "keyctl",
		unix.SYS_ADD_KEY: "add_key", unix.SYS_REQUEST_KEY: "request_key", unix.SYS_OPEN_BY_HANDLE_AT: "open_by_handle_at",
		unix.SYS_MEMFD_CREATE: "memfd_create", unix.SYS_PERSONALITY: "personality", unix.SYS_SYSLOG: "syslog",
		unix.SYS_SETHOSTNAME: "sethostname", unix.SYS_REBOOT: "reboot",
	}
}

// largest is the most bytes of one message on the control socket.
const largest = 100 << 10

// NewControl returns the two ends of a control socket. Each message is one packet of
// JSON, which may carry a file descriptor.
func NewControl() (ours *net.UnixConn, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("control socket: %w", err)
	}
	theirs = os.NewFile(uintptr(pair[1]), "control")
	mine := os.NewFile(uintptr(pair[0]), "control")
	defer mine.Close()
	conn, err := net.FileConn(mine)
	if err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("control socket: %w", err)
	}
	return conn.(*net.UnixConn), theirs, nil
}

// Pass writes the policy to the child process.
func (p *Policy) Pass(conn *net.UnixConn) error {
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	_, err = conn.Write(text)
	return err
}

// Next reads the next message of the child process. The descriptor is negative if none
// came with it. It returns io.EOF when the process has ended.
func Next(conn *net.UnixConn) (m Message, attached int, err error) {
	text, oob := make([]byte, largest), make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := conn.ReadMsgUnix(text, oob)
	switch {
	case err != nil:
		return m, -1, fmt.Errorf("control socket: %w", err)
	case n == 0:
		return m, -1, io.EOF
	}
	return m, attachedTo(oob[:oobn]), json.Unmarshal(text[:n], &m)
}

// send writes one message, with a descriptor unless fd is negative.
func send(fd int, message any, attached int) error {
	text, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	var rights []byte
	if attached >= 0 {
		rights = unix.UnixRights(attached)
	}
	for {
		err = unix.Sendmsg(fd, text, rights, nil, unix.MSG_NOSIGNAL)
		if err != unix.EINTR { //nolint:errorlint // an errno of the system call, not wrapped
			return err
		}
	}
}

// receive reads one message. It returns io.EOF when the other end is closed.
func receive(fd int, message any) error {
	text := make([]byte, largest)
	for {
		n, err := unix.Read(fd, text)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return fmt.Errorf("control socket: %w", err)
		case n == 0:
			return io.EOF
		default:
			return json.Unmarshal(text[:n], message)
		}
	}
}

func attachedTo(oob []byte) int {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) == 0 {
		return -1
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return -1
	}
	return fds[0]
}
