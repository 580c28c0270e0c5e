//go:build unix

package command

import (
	"os/exec"
	"syscall"
)

// endWithChildren makes the end of a program the end of the processes that it started.
func endWithChildren(child *exec.Cmd) {
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	child.Cancel = func() error { return syscall.Kill(-child.Process.Pid, syscall.SIGKILL) }
}
