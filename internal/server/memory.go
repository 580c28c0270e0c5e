package server

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// restPeriod is how long the server must have little to do before its memory goes back to
// the system.
const restPeriod = 15 * time.Second

// restBytes is how much memory a server that rests uses in a period, at most.
const restBytes = 1 << 20

// returnMemory gives memory back to the system once after each load. By itself the collector
// keeps as much as the load needed, because another one may come.
func (srv *Server) returnMemory() {
	srv.runBackground(func(ctx context.Context) {
		ticker := time.NewTicker(restPeriod)
		defer ticker.Stop()
		for r := (rest{}); ; {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
			if r.begins(allocated()) {
				debug.FreeOSMemory()
			}
		}
	})
}

// rest notices when a load has ended.
type rest struct {
	allocated uint64
	busy      bool
}

// begins tells whether the period that ends now is the first one with little to do. allocated
// is what the process has allocated since its start.
func (r *rest) begins(allocated uint64) bool {
	before := r.busy
	r.busy = allocated-r.allocated > restBytes
	r.allocated = allocated
	return before && !r.busy
}

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
