//go:build linux || darwin

package js

import (
	"fmt"
	"syscall"
)

// reserve maps n zero bytes that cost nothing until they are touched.
func reserve(n int) ([]byte, error) {
	const flags = syscall.MAP_PRIVATE | syscall.MAP_ANON | syscall.MAP_NORESERVE
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, flags)
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes: %w", n, err)
	}
	return b, nil
}

// release unmaps memory that reserve returned. Unmapping a whole mapping cannot fail.
func release(b []byte) { _ = syscall.Munmap(b) }
