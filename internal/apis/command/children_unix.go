//go:build unix

package command

import (
	"os/exec"
	"syscall"
)

// endWithChildren makes the end of a program the end of the processes that it started. A
// sandbox has a session of its own already.
func endWithChildren(child *exec.Cmd) {
	if child.SysProcAttr == nil {
		child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	}
	child.Cancel = func() error { return syscall.Kill(-child.Process.Pid, syscall.SIGKILL) }
}
