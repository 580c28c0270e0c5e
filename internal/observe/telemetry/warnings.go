package telemetry

import (
	"log/slog"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
)

// warnInterval is how often a failing export is logged.
const warnInterval = time.Minute

// exportWarnings logs failing exports, only on the console: the first at once, then at
// most one per minute.
type exportWarnings struct {
	log   *slog.Logger
	clock clock.Clock

	mu         sync.Mutex
	next       time.Time // no warning before this time
	suppressed int       // warnings suppressed since the last one
}

// warn logs that a signal was not delivered.
func (c *exportWarnings) warn(signal string, err error) {
	if suppressed, now := c.due(); now {
		c.log.Warn("telemetry is not delivered", "signal", signal, KeyError, err, "unmentioned", suppressed)
	}
}

// due reports whether a warning may be logged now, and how many were suppressed since
// the last one.
func (c *exportWarnings) due() (suppressed int, now bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.clock.Now()
	if t.Before(c.next) {
		c.suppressed++
		return 0, false
	}
	suppressed, c.suppressed, c.next = c.suppressed, 0, t.Add(warnInterval)
	return suppressed, true
}
