package packages

import (
	"os/exec"
	"syscall"
)

// endWithUs makes a program end with this process, however that ends, and all that it has
// started when its context ends.
func endWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
