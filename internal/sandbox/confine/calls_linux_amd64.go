package confine

import (
	"golang.org/x/sys/unix"
)

const auditArch = unix.AUDIT_ARCH_X86_64

func refusedHere() []uint32 {
	return []uint32{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS_SYSFS, unix.SYS_USTAT}
}

func forkCalls() []uint32 { return []uint32{unix.SYS_FORK, unix.SYS_VFORK} }

// olderCalls are the calls without a folder's descriptor.
func olderCalls() map[uint32]access {
	return map[uint32]access{
		unix.SYS_OPEN:    {-1, 0, "", 1},
		unix.SYS_CREAT:   {-1, 0, Writing, 0},
		unix.SYS_UNLINK:  {-1, 0, Writing, 0},
		unix.SYS_RMDIR:   {-1, 0, Writing, 0},
		unix.SYS_MKDIR:   {-1, 0, Writing, 0},
		unix.SYS_RENAME:  {-1, 1, Writing, 0},
		unix.SYS_LINK:    {-1, 1, Writing, 0},
		unix.SYS_SYMLINK: {-1, 1, Writing, 0},
	}
}
