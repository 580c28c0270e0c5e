package chatapi

import (
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/chat/conversation"
)

// rates counts messages by person and minute.
type rates struct {
	most  int
	clock clock.Clock

	mu     sync.Mutex
	minute time.Time
	counts map[conversation.Person]int
}

// take counts a message and reports whether it is within the limit.
func (r *rates) take(p conversation.Person) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.clock.Now().Truncate(time.Minute); !now.Equal(r.minute) {
		r.minute, r.counts = now, map[conversation.Person]int{}
	}
	r.counts[p]++
	return r.counts[p] <= r.most
}
