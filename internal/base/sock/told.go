//go:build unix && (!linux || race)

package sock

import (
	"errors"
	"syscall"
)

const supported = true

// Alert does nothing: every read and write wakes the watchdog.
func Alert() {}

func read(fd uintptr, p []byte) (int, error) { return told(syscall.Read, fd, p) }

func write(fd uintptr, p []byte) (int, error) { return told(syscall.Write, fd, p) }

// told is a system call of which the scheduler knows. Elsewhere than on Linux there is
// no other; and the race detector knows by it that what is read was written before.
func told(call func(fd int, p []byte) (int, error), fd uintptr, p []byte) (int, error) {
	for {
		if n, err := call(int(fd), p); !errors.Is(err, syscall.EINTR) {
			return max(0, n), err
		}
	}
}
