package server

import (
	"cmp"
	"context"
	"time"

	"github.com/luanette/luanette/internal/store/db"
)

// How often is looked for what others changed although nobody told: they tell, where
// they can. Processes that share a file cannot.
const (
	lookShared = 30 * time.Second
	lookAlone  = 2 * time.Second
)

// heed has look called whenever a topic is spoken of, or may have been while we did
// not hear, and now and then in any case. It returns when ctx ends.
func (h *House) heed(ctx context.Context, topic string, look func(context.Context) error) {
	every := lookAlone
	if h.isShared() {
		every = cmp.Or(h.options.unasked, lookShared)
	}
	news := make(chan struct{}, 1)
	h.work.Go(func() {
		_ = h.store.Listen(ctx, topic, func(db.Notification) { // it ends with the house
			select {
			case news <- struct{}{}:
			default: // it will look anyway
			}
		})
	})
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-news:
		case <-tick.C:
		}
		if err := look(ctx); err != nil && ctx.Err() == nil {
			h.log.WarnContext(ctx, "not looked at what others changed", "topic", topic, "error", err)
		}
	}
}
