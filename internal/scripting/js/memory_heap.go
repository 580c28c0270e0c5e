//go:build !linux && !darwin

package js

// reserve allocates n zero bytes on the Go heap.
func reserve(n int) ([]byte, error) { return make([]byte, n), nil }

// release leaves the bytes to the garbage collector.
func release([]byte) {}
