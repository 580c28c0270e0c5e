package upstream

import (
	"context"

	"github.com/luanette/luanette/internal/core/event"
)

// Await returns when done accepts the status of an upstream, the upstream was
// removed, or ctx ends. The manager must publish its events on bus.
func (m *Manager) Await(ctx context.Context, bus *event.Bus, name string, done func(Status) bool) {
	sub := bus.Subscribe(event.Options{Types: []string{"upstream.*"}})
	defer sub.Close()
	for {
		if s, ok := m.Status(name); !ok || done(s) {
			return
		}
		if _, err := sub.Next(ctx); err != nil {
			return
		}
	}
}
