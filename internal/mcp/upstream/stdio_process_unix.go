//go:build unix

package upstream

import (
	"os"
	"os/exec"
	"syscall"
)

// setProcessGroup puts the command into a process group of its own: signals to our
// group do not reach it, and ours reach all its processes.
// A sandbox has a session of its own already.
func setProcessGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	}
}

func terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// kill kills the whole group. The id of a group is not reused as long as the group
// has members, even if its leader has ended.
func kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// unread empties a pipe that no process reads from any more and returns how many
// bytes were left in it; zero if it is closed.
func unread(pipe *os.File) (left int64) {
	conn, err := pipe.SyscallConn()
	if err != nil {
		return 0
	}
	_ = conn.Control(func(fd uintptr) {
		if syscall.SetNonblock(int(fd), true) != nil {
			return
		}
		buffer := make([]byte, 64<<10)
		for {
			n, err := syscall.Read(int(fd), buffer)
			if n <= 0 || err != nil {
				return
			}
			left += int64(n)
		}
	})
	return left
}
