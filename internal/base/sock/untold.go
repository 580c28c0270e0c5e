//go:build linux && !race

package sock

import (
	"syscall"
	"unsafe"
)

const supported = true

func read(fd uintptr, p []byte) (int, error) { return call(syscall.SYS_READ, fd, p) }

func write(fd uintptr, p []byte) (int, error) { return call(syscall.SYS_WRITE, fd, p) }

// Alert wakes the scheduler's watchdog: this is a call of which it is told.
func Alert() { _, _, _ = syscall.Syscall(syscall.SYS_GETPID, 0, 0, 0) }

// call is a system call of which the scheduler does not know. There must be
// something to read into or to write.
func call(number, fd uintptr, p []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall(number, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}
