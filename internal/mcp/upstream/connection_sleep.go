package upstream

import (
	"context"
	"time"
)

// asleep reports whether a lazy server should not run now.
func (c *connection) asleep() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state == StateAsleep
}

// setAsleep stops attempts until the next call.
func (c *connection) setAsleep() {
	c.update(func() {
		drain(c.wake) // a caller that still needs the server sees the change of state and wakes it again
		c.state, c.since, c.attempt, c.backoffStep = StateAsleep, time.Now(), 0, 0
	})
}

// waitForUse waits until a caller needs the server. It reports false if ctx ends.
func (c *connection) waitForUse(ctx context.Context) bool {
	c.publish(Asleep{Upstream: c.name})
	select {
	case <-c.wake:
		c.update(func() { c.state, c.since, c.lastStartOK = StateConnecting, time.Now(), true })
		return true
	case <-ctx.Done():
		return false
	}
}

// wakeUp starts a server that is asleep. It does not wait for it.
func (c *connection) wakeUp() {
	if c.asleep() {
		c.update(func() { c.state, c.since, c.lastStartOK, c.lastUsed = StateConnecting, time.Now(), true, time.Now() })
		signal(c.wake)
	}
}

// isIdle reports whether the server may go to sleep.
func (c *connection) isIdle(s *session) bool {
	spec := c.currentSpec()
	return spec.lazy() && spec.idle() > 0 && s.activeCalls() == 0 && c.sinceLastUse() >= spec.idle() && !c.hasSubscribers()
}

// unused reports whether no caller waits any more for a lazy server that cannot be
// started.
func (c *connection) unused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spec.lazy() && (c.cached.Server != "" || c.owner != "") && time.Since(c.lastUsed) > c.opts.ConnectTimeout && c.waiters == 0
}

func (c *connection) sinceLastUse() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.lastUsed)
}
