//go:build unix && !linux

package sock

import "syscall"

const supported = true

// Alert does nothing: every read and write wakes the watchdog.
func Alert() {}

func read(fd uintptr, p []byte) (int, error) { return told(syscall.Read(int(fd), p)) }

func write(fd uintptr, p []byte) (int, error) { return told(syscall.Write(int(fd), p)) }

// told is a system call of which the scheduler knows: elsewhere than on Linux there
// is no other.
func told(n int, err error) (int, error) { return max(0, n), err }
