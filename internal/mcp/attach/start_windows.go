package attach

import (
	"os/exec"
	"syscall"
)

// detachedProcess is DETACHED_PROCESS of the Windows API.
const detachedProcess = 0x00000008

// detach gives a process a group of its own and no console, so that it outlives ours.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP | detachedProcess}
}
