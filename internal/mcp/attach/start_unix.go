//go:build unix

package attach

import (
	"os/exec"
	"syscall"
)

// detach gives a process a session of its own, so that signals of our terminal do not
// reach it.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
