//go:build !linux && !darwin

package js

// reserve takes n zero bytes from the Go heap.
func reserve(n int) ([]byte, error) { return make([]byte, n), nil }

// release leaves the bytes to the garbage collector.
func release([]byte) {}
