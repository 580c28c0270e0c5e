//go:build !unix

package upstream

import "os/exec"

// Without process groups only the process itself can be ended.

func isolate(*exec.Cmd) {}

func terminate(*exec.Cmd) {}

func kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
