package upstream

import (
	"sync"
	"time"
)

// rateLimit allows so many events per second.
type rateLimit struct {
	perSecond int

	mu     sync.Mutex
	second time.Time // when the current second began
	count  int
}

func (r *rateLimit) allow(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.second) >= time.Second {
		r.second, r.count = now, 0
	}
	r.count++
	return r.count <= r.perSecond
}
