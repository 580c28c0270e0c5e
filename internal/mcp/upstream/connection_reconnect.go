package upstream

import (
	"context"
	"log/slog"
	"time"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
)

// waitToReconnect reports why an attempt or a session ended, and waits until the
// next attempt is due or a caller needs the server. A session that served calls
// resets the backoff; one that failed at once does not.
func (c *connection) waitToReconnect(ctx context.Context, err error, served bool) {
	challenge, auth := isAuthError(err)
	var delay time.Duration
	attempt, level := 0, slog.LevelDebug
	c.update(func() {
		if c.loggedReason != err.Error() { // the same reason again is logged at debug level
			c.loggedReason, level = err.Error(), slog.LevelInfo
		}
		if served {
			c.attempt, c.backoffStep = 0, 0
		}
		c.attempt++
		c.backoffStep++
		attempt = c.attempt
		c.state, c.since = StateReconnecting, time.Now()
		delay = max(c.opts.Backoff.Delay(c.backoffStep), minDelay(attempt))
		if auth {
			c.state, c.challenge, delay = StateNeedsAuth, challenge, c.opts.AuthRetry
		}
		c.next = time.Now().Add(delay)
	})
	c.log.Log(ctx, level, "disconnected", "attempt", attempt, "retry_in", delay, "error", err)
	if auth {
		c.publish(NeedsAuth{Upstream: c.name, Error: err.Error(), Challenge: challenge, Hint: fault.HintOf(c.needsAuthError(err, challenge))})
	} else {
		c.publish(Reconnecting{Upstream: c.name, Attempt: attempt, DelayMS: delay.Milliseconds(), Error: err.Error()})
	}
	c.sleepUntilRetry(ctx, delay, minDelay(attempt), auth)
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
