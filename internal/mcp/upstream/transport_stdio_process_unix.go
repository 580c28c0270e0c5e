//go:build unix

package upstream

import (
	"os"
	"os/exec"
	"syscall"
)

// setProcessGroup puts the command into a process group of its own: signals meant for us
// do not reach it, and ours reach all of it.
func setProcessGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// kill forces the whole group. The group outlives its leader as long as it has
// members, so its number cannot have become somebody else's while it matters.
func kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// unread counts what is left in a pipe nobody reads from any more; nothing when
// it is closed already.
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
