package upstream

import (
	"context"
	"log/slog"
	"strings"
	"time"
	"unicode"

	"github.com/luanette/luanette/internal/base/fault"
)

// waitToReconnect reports why an attempt or a session ended, and waits until the
// next attempt is due or a caller needs the server. A session that served calls
// resets the backoff; one that failed at once does not.
func (c *connection) waitToReconnect(ctx context.Context, err error, served bool) {
	challenge, auth := isAuthError(err)
	var f failure
	c.update(func() {
		if served {
			c.attempt, c.backoffStep, c.repeated = 0, 0, repetition{}
		}
		c.attempt++
		c.backoffStep++
		f = failure{err: err, attempt: c.attempt, changed: c.repeated.add(err)}
		c.state, c.since = StateReconnecting, time.Now()
		f.least = minDelay(c.attempt)
		f.delay = max(c.opts.Backoff.Delay(c.backoffStep), f.least)
		switch {
		case auth:
			c.state, c.challenge, f.delay = StateNeedsAuth, challenge, c.opts.AuthRetry
		case c.isDenied(err):
			c.state, f.delay = StateNeedsAuth, c.spec.idle()
		case c.spec.Command != "" && c.repeated.isFinal(c.attempt):
			c.state, f.delay, f.least = StateFailed, c.opts.FailedRetry, min(failedLeast, c.opts.FailedRetry)
		}
		f.state, c.next = c.state, time.Now().Add(f.delay)
	})
	c.reportFailure(ctx, f, challenge)
	c.sleepUntilRetry(ctx, f)
	if c.isDenied(err) && c.unused() {
		c.end(c)
	}
}

// failure is a failed attempt or a lost session, and when the next attempt follows.
type failure struct {
	err     error
	attempt int
	changed bool // the reason is another one than before
	state   State
	delay   time.Duration // until the next attempt
	least   time.Duration // until a caller can trigger one
}

// reportFailure logs and publishes a failure. Of many for the same reason it
// publishes the first few, and then each whose number is a power of two: a server
// that is down for a week makes a handful of events.
func (c *connection) reportFailure(ctx context.Context, f failure, challenge string) {
	level, text := slog.LevelDebug, f.err.Error()
	if f.changed {
		level = slog.LevelInfo
	}
	c.log.Log(ctx, level, "disconnected", "attempt", f.attempt, "retry_in", f.delay, "error", f.err)
	rare := f.attempt > finalRepetitions && f.attempt&(f.attempt-1) != 0 && !f.changed
	switch {
	case rare:
	case f.state == StateNeedsAuth:
		c.publish(NeedsAuth{Upstream: c.name, Error: text, Challenge: challenge, Hint: fault.HintOf(c.needsAuthError(f.err, challenge))})
	case f.state == StateFailed:
		c.publish(Failed{Upstream: c.name, Attempt: f.attempt, DelayMS: f.delay.Milliseconds(), Error: text})
	default:
		c.publish(Reconnecting{Upstream: c.name, Attempt: f.attempt, DelayMS: f.delay.Milliseconds(), Error: text, Hint: hintOf(f.err)})
	}
}

// A process is given up for a while when it failed so many times in a row with the
// same words, or so many times in any way.
const (
	finalRepetitions = 5
	finalFailures    = 20
)

// failedLeast is how long calls cannot trigger an attempt in StateFailed.
const failedLeast = 30 * time.Second

// repetition counts failures in a row that have the same reason.
type repetition struct {
	words string
	count int
}

// add counts a failure. It reports whether the reason is another one than before.
func (r *repetition) add(err error) (changed bool) {
	words := strings.Map(func(c rune) rune {
		if unicode.IsDigit(c) { // times, ports and process ids differ
			return -1
		}
		return c
	}, logReason(err))
	if changed = words != r.words; changed {
		*r = repetition{words: words}
	}
	r.count++
	return changed
}

func (r *repetition) isFinal(attempts int) bool {
	return r.count >= finalRepetitions || attempts >= finalFailures
}

// minDelay is the shortest delay after so many failures in a row, so that callers
// that wake the connection cannot make it retry, and start processes, in a loop.
func minDelay(attempt int) time.Duration {
	return min(time.Duration(attempt)*20*time.Millisecond, 500*time.Millisecond)
}

// sleepUntilRetry waits for the delay. After the least delay a caller ends the wait
// and resets the backoff, unless credentials are missing. Somebody who asks for an
// attempt ends it at once.
func (c *connection) sleepUntilRetry(ctx context.Context, f failure) {
	due, least := time.NewTimer(f.delay), time.NewTimer(f.least)
	defer due.Stop()
	defer least.Stop()
	var wake chan struct{} // not yet
	for {
		select {
		case <-least.C:
			if f.state != StateNeedsAuth {
				wake = c.wake
			}
			continue
		case <-wake:
			c.update(func() { c.backoffStep = 0 })
		case <-c.retry:
		case <-due.C:
		case <-ctx.Done():
		}
		return
	}
}

// retryNow asks for an attempt at once, unless the server is connected.
func (c *connection) retryNow() {
	c.update(func() {
		if c.session != nil {
			return
		}
		if c.state == StateFailed { // calls wait again
			c.state, c.since = StateReconnecting, time.Now()
		}
		if c.state == StateAsleep && c.listsOnly() { // there may be a login now
			signal(c.wake)
		}
		signal(c.retry)
	})
}

// canWake reports whether a call triggers an attempt in StateFailed; c.mu is held.
func (c *connection) canWake() bool {
	return time.Since(c.since) >= min(failedLeast, c.opts.FailedRetry)
}
