//go:build unix

package upstream

import (
	"os/exec"
	"syscall"
)

// isolate puts the command into a process group of its own: signals meant for us
// do not reach it, and ours reach all of it.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// kill forces the whole group. The group outlives its leader as long as it has
// members, so its number cannot have become somebody else's while it matters.
func kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
