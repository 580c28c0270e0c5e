package cputime

import (
	"time"

	"golang.org/x/sys/unix"
)

// now returns the processor time of the thread.
func now() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // the clock always exists
	return time.Duration(t.Nano())
}
