package upstream

import (
	"sync"
	"time"
)

// ration lets so many things pass per second.
type ration struct {
	perSecond int

	mu     sync.Mutex
	second time.Time
	count  int
}

func (r *ration) take(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.second) >= time.Second {
		r.second, r.count = now, 0
	}
	r.count++
	return r.count <= r.perSecond
}
