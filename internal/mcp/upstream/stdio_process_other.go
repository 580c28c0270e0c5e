//go:build !unix

package upstream

import (
	"os"
	"os/exec"
)

// Without process groups only the process itself can be killed.

func setProcessGroup(*exec.Cmd) {}

func terminate(*exec.Cmd) {}

func kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func unread(*os.File) int64 { return 0 }
