package confine

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

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
