//go:build linux && (amd64 || arm64)

package httpserver

import (
	"syscall"
	"time"
	"unsafe"
)

// coarseClock is CLOCK_REALTIME_COARSE: it advances with the kernel's ticks.
const coarseClock = 5

// receivedAt asks the kernel. It counts in ticks of its clock, so the same clock is read,
// before and after, until no tick falls in between.
func receivedAt(fd uintptr) (time.Time, bool) {
	for {
		before, ok := ticks()
		var info syscall.TCPInfo
		size := uint32(unsafe.Sizeof(info))
		_, _, failed := syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, syscall.IPPROTO_TCP, syscall.TCP_INFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
		after, _ := ticks()
		if !ok || failed != 0 {
			return time.Time{}, false
		}
		if before.Equal(after) {
			return before.Add(-time.Duration(info.Last_data_recv) * time.Millisecond), true
		}
	}
}

func ticks() (time.Time, bool) {
	var t syscall.Timespec
	_, _, failed := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, coarseClock, uintptr(unsafe.Pointer(&t)), 0)
	return time.Unix(t.Unix()), failed == 0
}
