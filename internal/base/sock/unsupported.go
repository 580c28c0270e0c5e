//go:build !unix

package sock

import "errors"

const supported = false

// Alert does nothing: every read and write wakes the watchdog.
func Alert() {}

func read(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }

func write(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }
