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
	pollShared = 30 * time.Second
	pollAlone  = 2 * time.Second
)

// poll has look called whenever a topic is spoken of, or may have been while we did
// not hear, and now and then in any case. It returns when ctx ends.
func (srv *Server) poll(ctx context.Context, topic string, look func(context.Context) error) {
	every := pollAlone
	if srv.isShared() {
		every = cmp.Or(srv.options.pollInterval, pollShared)
	}
	news := make(chan struct{}, 1)
	srv.background.Go(func() {
		_ = srv.store.Listen(ctx, topic, func(db.Notification) { // it ends with the server
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
			srv.log.WarnContext(ctx, "not looked at what others changed", "topic", topic, "error", err)
		}
	}
}
