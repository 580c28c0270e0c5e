package peer

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func ofUnix(c *net.UnixConn) (socket, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return socket{}, err
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) { peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return socket{}, err
	}
	if failed != nil {
		return socket{}, failed
	}
	return socket{uid: int(peer.Uid), pid: int(peer.Pid)}, nil
}

// The layout of inet_diag_req_v2 and inet_diag_msg (linux/inet_diag.h).
const (
	sockDiagByFamily = 20
	requestSize      = unix.NLMSG_HDRLEN + 56
	sourceAt         = unix.NLMSG_HDRLEN + 8 // of both: two ports, then two addresses
	answerUID        = unix.NLMSG_HDRLEN + 64
	answerInode      = unix.NLMSG_HDRLEN + 68
)

// ofTCP asks the kernel for the socket that is bound to their address and connected to ours.
func ofTCP(theirs, ours netip.AddrPort) (socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return socket{}, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Sendto(fd, request(theirs, ours), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return socket{}, fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil || n < answerInode+4 || binary.NativeEndian.Uint16(answer[4:]) != sockDiagByFamily {
		return socket{}, fmt.Errorf("%w: no socket at %s", ErrUnknown, theirs)
	}
	s := socket{uid: int(binary.NativeEndian.Uint32(answer[answerUID:])), inode: binary.NativeEndian.Uint32(answer[answerInode:])}
	if s.inode == 0 { // it is closed: neither its process nor its user is known any more
		return socket{}, fmt.Errorf("%w: it has ended", ErrUnknown)
	}
	return s, nil
}

func request(theirs, ours netip.AddrPort) []byte {
	q := make([]byte, requestSize)
	binary.NativeEndian.PutUint32(q[0:], requestSize)
	binary.NativeEndian.PutUint16(q[4:], sockDiagByFamily)
	binary.NativeEndian.PutUint16(q[6:], unix.NLM_F_REQUEST)
	body := q[unix.NLMSG_HDRLEN:]
	body[0], body[1] = unix.AF_INET, unix.IPPROTO_TCP
	if theirs.Addr().Is6() {
		body[0] = unix.AF_INET6
	}
	binary.NativeEndian.PutUint32(body[4:], ^uint32(0)) // in any state
	id := q[sourceAt:]
	binary.BigEndian.PutUint16(id[0:], theirs.Port())
	binary.BigEndian.PutUint16(id[2:], ours.Port())
	copy(id[4:20], theirs.Addr().AsSlice())
	copy(id[20:36], ours.Addr().AsSlice())
	binary.NativeEndian.PutUint64(id[40:], ^uint64(0)) // without a cookie
	return q
}

// tries is how often the processes are looked at: the socket may pass from a process to its
// child meanwhile.
const tries = 3

// holder returns the process that has a socket open. A process that hides its files is not
// found.
func (f *Finder) holder(inode uint32) (int, error) {
	f.mu.Lock()
	recent := f.recent
	f.mu.Unlock()
	for _, pid := range recent {
		if holds(pid, inode) {
			return pid, nil
		}
	}
	for range tries {
		for _, pid := range processes() {
			if holds(pid, inode) {
				f.remember(pid)
				return pid, nil
			}
		}
	}
	return 0, ErrUnknown
}

// processes returns all processes, the youngest first, as clients mostly are.
func processes() (pids []int) {
	list, _ := os.ReadDir("/proc")
	for _, folder := range list {
		if pid, err := strconv.Atoi(folder.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	slices.Reverse(pids)
	return pids
}

// parentOf returns the parent of a process.
func parentOf(pid int) (int, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, fmt.Errorf("%w: it has ended", ErrUnknown)
	}
	_, rest, _ := strings.Cut(string(text), ") ") // behind its name
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0, ErrUnknown
	}
	return strconv.Atoi(fields[1])
}

// holds reports whether a process has a socket open.
func holds(pid int, inode uint32) bool {
	want := "socket:[" + strconv.FormatUint(uint64(inode), 10) + "]"
	folder := "/proc/" + strconv.Itoa(pid) + "/fd/"
	list, _ := os.ReadDir(folder)
	for _, file := range list {
		if link, err := os.Readlink(folder + file.Name()); err == nil && link == want {
			return true
		}
	}
	return false
}
