package confine

import (
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Attributes are those of the process that is to apply the policy. It is in a session of
// its own, whose group has all its processes.
//
// In a new user namespace our own ids stay what they are. An id other than 0 loses its
// capabilities when it executes a program: ambient ones stay.
func (p *Policy) Attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if !p.Namespaces {
		return attr
	}
	attr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	if p.Network != HostNetwork {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_PTRACE, unix.CAP_SETPCAP}
	return attr
}

// LandlockVersion is the kernel's version of Landlock; 0 if it has none.
func LandlockVersion() int { return landlockABI() }

// FilterSupport says why system calls cannot be filtered here; empty if they can.
func FilterSupport() string {
	if auditArch == 0 {
		return "the system calls of " + runtime.GOARCH + " are not known"
	}
	return ""
}
