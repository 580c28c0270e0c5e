//go:build !linux

package launch

import "runtime"

// examine says that there is no sandbox.
func (l *Launcher) examine() Support {
	return Support{System: "there is no sandbox on this system (" + runtime.GOOS + "), only on Linux; containers work: docker:IMAGE or podman:IMAGE"}
}
