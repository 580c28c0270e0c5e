package telemetry

import (
	"log/slog"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
)

// complaintEvery is how often a failing export is mentioned.
const complaintEvery = time.Minute

// exportWarnings says on the console, and there only, that a collector does not take
// what we send: once, then at most every minute.
type exportWarnings struct {
	log   *slog.Logger
	clock clock.Clock

	mu      sync.Mutex
	next    time.Time // not before
	swallow int       // since the last one
}

// about complains that a signal was not delivered.
func (c *exportWarnings) about(signal string, err error) {
	if swallowed, now := c.due(); now {
		c.log.Warn("telemetry is not delivered", "signal", signal, KeyError, err, "unmentioned", swallowed)
	}
}

// due tells whether it is time to complain, and how many were not since.
func (c *exportWarnings) due() (swallowed int, now bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.clock.Now()
	if t.Before(c.next) {
		c.swallow++
		return 0, false
	}
	swallowed, c.swallow, c.next = c.swallow, 0, t.Add(complaintEvery)
	return swallowed, true
}
