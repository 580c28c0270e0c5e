package db

import (
	"context"
	"log/slog"
	"time"
)

// Poll calls look after each notification on a topic, after a notification may have been
// missed, and at every interval in any case, until ctx ends. Processes that share a
// SQLite file cannot notify each other: there the interval is all there is.
func (d *DB) Poll(ctx context.Context, topic string, every time.Duration, log *slog.Logger, look func(context.Context) error) {
	notified := make(chan struct{}, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = d.Listen(ctx, topic, func(Notification) { // it ends with ctx
			select {
			case notified <- struct{}{}:
			default: // a look is due already
			}
		})
	}()
	defer func() { <-ended }()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-notified:
		case <-tick.C:
		}
		if err := look(ctx); err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "changes of other processes not read", "topic", topic, "error", err)
		}
	}
}
