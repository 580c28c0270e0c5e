//go:build !linux

package launch

import (
	"errors"
	"syscall"

	"github.com/luanette/luanette/internal/sandbox/confine"
)

type cgroups struct{}

func findCgroups(string) (*cgroups, error) { return nil, errors.ErrUnsupported }

func (*cgroups) group(string, confine.Limits) (*cgroup, error) { return nil, errors.ErrUnsupported }

type cgroup struct{}

func (*cgroup) startIn(*syscall.SysProcAttr) {}

func (*cgroup) exceeded() []confine.Note { return nil }

func (*cgroup) end() {}
