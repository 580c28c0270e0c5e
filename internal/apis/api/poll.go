package api

import (
	"context"
	"time"
)

// defaultReload is how often a service is asked for its description.
const defaultReload = time.Hour

// Poll calls look every Settings.Reload until ctx ends; never if that is negative.
func (s Settings) Poll(ctx context.Context, look func(context.Context)) {
	if s.Reload < 0 {
		<-ctx.Done()
		return
	}
	interval := s.Reload
	if interval == 0 {
		interval = defaultReload
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			look(ctx)
		}
	}
}
