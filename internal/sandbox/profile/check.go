package profile

import (
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

// Engines that run containers, for Level "docker:IMAGE" and "podman:IMAGE".
const (
	Docker = "docker"
	Podman = "podman"
)

// Container is the engine and the image of a level that is a container.
func (l Level) Container() (engine, image string, is bool) {
	engine, image, found := strings.Cut(string(l), ":")
	return engine, image, found && (engine == Docker || engine == Podman) && image != ""
}

// Check refuses a level that does not exist.
func (l Level) Check() error {
	if _, _, is := l.Container(); is || l == "" || l == Off || l == Open || l == Strict {
		return nil
	}
	return fault.New(fault.Config, "there is no sandbox level %q", string(l)).
		WithHint("use off, open, strict, docker:IMAGE or podman:IMAGE; docs/sandbox.md")
}
