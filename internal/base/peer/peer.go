// Package peer finds out which user of this machine is at the other end of a connection,
// and whether it is a program that this process started.
package peer

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Peer is at the other end of a connection inside this machine.
type Peer struct {
	UID int
	// Program is which of the programs given to Find it is, or has started it; 0: none.
	Program int
}

var (
	// ErrUnsupported means that the system does not tell who is at the other end.
	ErrUnsupported = errors.New("this system does not tell who is at the other end of a connection")
	// ErrUnknown means that the program at the other end has ended, or hides its files.
	ErrUnknown = errors.New("no program was found at the other end of the connection")
)

// Finder finds peers. It remembers the processes that it found, because most connect again.
// The zero value is ready to use.
type Finder struct {
	mu     sync.Mutex
	recent []int // processes, the last one first
}

// maxRecent is how many processes are remembered.
const maxRecent = 16

// Find returns who is at the other end of a connection that comes from this machine.
// Programs are the processes that this process started. A peer of another user is returned
// without looking for its process.
func (f *Finder) Find(conn net.Conn, ownUID int, programs []int) (Peer, error) {
	s, err := socketOf(conn)
	if err != nil || s.uid != ownUID {
		return Peer{UID: s.uid}, err
	}
	pid := s.pid
	if pid == 0 {
		if pid, err = f.holder(s.inode); err != nil {
			return Peer{}, err
		}
	}
	root, err := rootOf(pid, programs)
	return Peer{s.uid, root}, err
}

// socket is the other end of a connection.
type socket struct {
	uid   int
	pid   int    // its process, where the system tells it at once
	inode uint32 // otherwise what identifies it
}

func socketOf(conn net.Conn) (socket, error) {
	switch c := conn.(type) {
	case *net.UnixConn:
		return ofUnix(c)
	case *net.TCPConn:
		theirs, ours := address(c.RemoteAddr()), address(c.LocalAddr())
		if theirs.IsValid() && ours.IsValid() {
			return ofTCP(theirs, ours)
		}
	}
	return socket{}, ErrUnsupported
}

// remember puts a process in front of those that are looked at first.
func (f *Finder) remember(pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := []int{pid}
	for _, other := range f.recent {
		if other != pid && len(list) < maxRecent {
			list = append(list, other)
		}
	}
	f.recent = list
}

// rootOf returns which of the programs a process descends from.
func rootOf(pid int, programs []int) (root int, err error) {
	for len(programs) > 0 && pid > 1 {
		if slices.Contains(programs, pid) {
			return pid, nil
		}
		if pid, err = parentOf(pid); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// IsLocal reports whether a connection does not leave this machine.
func IsLocal(conn net.Conn) bool {
	if _, ok := conn.(*net.UnixConn); ok {
		return true
	}
	theirs, ours := address(conn.RemoteAddr()), address(conn.LocalAddr())
	return theirs.IsValid() && (theirs.Addr().IsLoopback() || theirs.Addr() == ours.Addr())
}

func address(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	at := tcp.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}
