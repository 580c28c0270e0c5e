package js

import (
	"github.com/tetratelabs/wazero/experimental"
)

const wasmPage = 64 << 10

// region is the linear memory of one instance. It is reserved once and grows in place up to
// a limit. QuickJS ignores its own memory limit in this build, so region enforces it: a
// refused growth becomes an out-of-memory exception inside the script.
type region struct {
	buf     []byte               // the reservation; released by Free
	size    uint64               // what the module sees
	limit   uint64               // growing beyond is refused; at most len(buf)
	refused bool                 // a growth was refused since the last reset
	reserve func(n uint64) error // asked before the region grows; may be nil
	denied  error                // of reserve, since the last reset
}

// newRegion reserves limit bytes, of which nothing is used yet.
func newRegion(limit uint64) (*region, error) {
	buf, err := reserve(int(limit))
	if err != nil {
		return nil, err
	}
	return &region{buf: buf, limit: limit}, nil
}

// Allocate returns the region itself: each instance has its own allocator.
func (r *region) Allocate(_, _ uint64) experimental.LinearMemory { return r }

// Reallocate grows the region in place, or returns nil.
func (r *region) Reallocate(size uint64) []byte {
	if size > r.limit || size > uint64(len(r.buf)) {
		r.refused = true
		return nil
	}
	if r.reserve != nil && size > r.size {
		if err := r.reserve(size - r.size); err != nil {
			r.refused, r.denied = true, err
			return nil
		}
	}
	r.size = size
	return r.buf[:size:size]
}

// Free releases the reservation. wazero calls it when the instance closes.
func (r *region) Free() {
	if r.buf != nil {
		release(r.buf)
		r.buf = nil
	}
}

// bytes returns the memory in use. It is valid until Free.
func (r *region) bytes() []byte { return r.buf[:r.size] }
