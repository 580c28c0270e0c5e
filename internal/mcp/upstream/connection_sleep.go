package upstream

import (
	"context"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
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

// isIdle reports whether the server may go to sleep.
func (c *connection) isIdle(s *session) bool {
	spec := c.currentSpec()
	return spec.lazy() && spec.Idle > 0 && s.activeCalls() == 0 && c.sinceLastUse() >= spec.Idle
}

// unused reports whether no caller waits any more for a lazy server that cannot be
// started.
func (c *connection) unused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spec.lazy() && c.cached.Server != "" && time.Since(c.lastUsed) > c.opts.ConnectTimeout
}

func (c *connection) sinceLastUse() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.lastUsed)
}

// minDelay is the shortest delay after so many failures in a row, so that callers
// that wake the connection cannot make it retry, and start processes, in a loop.
func minDelay(attempt int) time.Duration {
	return min(time.Duration(attempt)*20*time.Millisecond, 500*time.Millisecond)
}

// sleepUntilRetry waits for delay. After least, a caller ends the wait and resets
// the backoff, unless credentials are missing.
func (c *connection) sleepUntilRetry(ctx context.Context, delay, least time.Duration, auth bool) {
	if clock.Real().Sleep(ctx, min(least, delay)) != nil {
		return
	}
	wake := c.wake
	if auth {
		wake = nil
	}
	timer := time.NewTimer(max(delay-least, 0))
	defer timer.Stop()
	select {
	case <-wake:
		c.update(func() { c.backoffStep = 0 })
	case <-c.retry:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// signal sets a flag, which is a channel with room for one element.
func signal(flag chan struct{}) {
	select {
	case flag <- struct{}{}:
	default:
	}
}

// drain clears such a flag.
func drain(flag chan struct{}) {
	select {
	case <-flag:
	default:
	}
}
