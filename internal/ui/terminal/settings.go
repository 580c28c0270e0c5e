package terminal

import (
	"context"
	"strings"
	"time"
)

// loadSettings loads which settings take effect after a restart.
func loadSettings(ctx context.Context, s *server, _ time.Time) (store, error) {
	var response struct {
		Settings []plain `json:"restart_needed"`
	}
	err := s.get(ctx, "health", &response)
	return func(b *state) { b.Restart = response.Settings }, ignoreMissing(err) // a proxy may hide this path
}

// restartNote is the header's note about settings that need a restart.
func (b *state) restartNote() string {
	if len(b.Restart) == 0 {
		return ""
	}
	return "restart needed for " + strings.Join(texts(b.Restart), ", ")
}
