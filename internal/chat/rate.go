package chat

import (
	"sync"
	"time"

	"github.com/luanette/luanette/internal/agent/talk"
	"github.com/luanette/luanette/internal/clock"
)

// rates count messages by person and minute.
type rates struct {
	most  int
	clock clock.Clock

	mu     sync.Mutex
	minute time.Time
	counts map[talk.Person]int
}

// take counts a message and tells whether it is one too many.
func (r *rates) take(p talk.Person) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.clock.Now().Truncate(time.Minute); !now.Equal(r.minute) {
		r.minute, r.counts = now, map[talk.Person]int{}
	}
	r.counts[p]++
	return r.counts[p] <= r.most
}
