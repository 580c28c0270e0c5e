package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// errIdle ends the session of a lazy server that has not been called for a while.
var errIdle = errors.New("idle")

// monitor watches a session until it ends or is unusable, and returns the reason.
// It checks the server's health when the server has been silent for long or may be
// down, and lists its tools again when they have changed.
func (c *connection) monitor(ctx context.Context, s *session) error {
	health := time.NewTimer(c.nextHealthCheck(s))
	defer health.Stop()
	var relist <-chan time.Time
	debounce := c.opts.Debounce
	for {
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.transport.Done():
			return s.transport.Err()
		case err := <-s.failed:
			return err
		case <-health.C:
			if c.isIdle(s) {
				return errIdle
			}
			if s.sinceLastReceived() >= s.healthInterval() {
				err = c.checkHealth(ctx, s)
			}
			health.Reset(c.nextHealthCheck(s))
		case <-c.checkNow:
			err = c.checkHealth(ctx, s)
		case <-c.toolsChanged:
			if relist == nil {
				relist = time.After(debounce)
			}
		case <-relist:
			relist = nil
			began := time.Now()
			err = c.refreshAfterNotification(ctx, s)
			// A server that changes a long list all the time takes a tenth of our time at most.
			debounce = max(c.opts.Debounce, 10*time.Since(began))
		}
		if err != nil {
			return err
		}
	}
}

// nextHealthCheck is the time until the server's health or idleness is checked,
// unless it sends something before.
func (c *connection) nextHealthCheck(s *session) time.Duration {
	next := s.healthInterval() - s.sinceLastReceived()
	if spec := c.currentSpec(); spec.lazy() && spec.idle() > 0 {
		next = min(next, spec.idle()-c.sinceLastUse())
	}
	return max(next, 10*time.Millisecond)
}

// checkHealth sends a health check. A timeout does not count while calls are active,
// unless the server must answer then too: it may be too busy, and calls have their own
// timeouts.
func (c *connection) checkHealth(ctx context.Context, s *session) error {
	err := s.checkHealth(ctx, c.opts.HealthTimeout)
	silent := errors.Is(err, errNoProgress)
	switch {
	case err == nil, ctx.Err() != nil, silent && s.activeCalls() > 0 && !s.answersWhileBusy():
		return nil //nolint:nilerr // see above
	case silent:
		return s.abort(&silentError{since: s.lastMessage(), server: s.endpoint.Transport})
	}
	return fmt.Errorf("health check: %w", err)
}

// refreshAfterNotification fetches the tools. If the server refuses to list them
// now, the known tools stay.
func (c *connection) refreshAfterNotification(ctx context.Context, s *session) error {
	err := c.refresh(ctx, s)
	var refused *wire.Error
	switch {
	case errors.As(err, &refused):
		c.setTools(c.knownTools(refused), func() bool { return c.session == s })
	case err != nil:
		return c.checkHealth(ctx, s)
	}
	return nil
}

// refresh fetches the tools of a session, and uses them if it is still current.
func (c *connection) refresh(ctx context.Context, s *session) error {
	c.refreshing.Lock()
	defer c.refreshing.Unlock()
	list, err := s.listTools(ctx, c.name, c.opts.startTimeout(c.currentSpec()))
	if err != nil {
		return err
	}
	c.setTools(list, func() bool { return c.session == s })
	return nil
}

// setTools makes list the current one, publishes what changed, and stores it in
// the cache. It does nothing if commit, which is called under the lock and may
// change the state as well, returns false.
func (c *connection) setTools(list *toolList, commit func() bool) {
	var old *toolList
	c.update(func() {
		if commit() {
			old = c.tools
			c.tools, c.stale = list, false
		}
	})
	if old == nil {
		return
	}
	if c.owner != "" {
		c.saveCache() // before anybody is told that the owner's tools are others
	} else {
		defer c.saveCache()
	}
	added, removed, changed := diff(old.tools, list.tools)
	if len(added)+len(removed)+len(changed) > 0 {
		c.publish(ToolsRefreshed{Upstream: c.name, ToolCount: len(list.tools), Added: added, Removed: removed, Changed: changed})
	}
	if problems := list.problems(); len(problems) > 0 && !slices.Equal(problems, old.problems()) {
		count := len(list.incomplete) + list.droppedCount
		c.publish(Dropped{Upstream: c.name, Reasons: problems, Count: count})
		c.log.Warn("tools are missing", "count", count, "first", problems[0])
	}
}

// notifyWatchers takes notifications of the server that belong to no call.
func (c *connection) notifyWatchers(method string, params json.RawMessage) {
	switch method {
	case wire.NoteToolsChanged:
		signal(c.toolsChanged)
	case wire.NoteTask, wire.NoteTaskStatus:
		c.taskNoted(params)
		return
	}
	c.mu.Lock()
	watchers := make([]func(string, json.RawMessage), 0, len(c.watchers))
	for _, watch := range c.watchers {
		watchers = append(watchers, watch)
	}
	c.mu.Unlock()
	for _, watch := range watchers {
		watch(method, params)
	}
}

// restoreSubscriptions sets the log level and the resource subscriptions of the
// last session in a new one.
func (c *connection) restoreSubscriptions(ctx context.Context, s *session) {
	c.mu.Lock()
	level := c.logLevel
	uris := make([]string, 0, len(c.subscribers))
	for uri := range c.subscribers {
		uris = append(uris, uri)
	}
	c.mu.Unlock()
	restore := func(method, key, value string) {
		_, _ = s.request(ctx, &request{method: method, params: rawjson.SetText(nil, key, value), timeout: c.opts.HealthTimeout})
	}
	if level != "" {
		restore(wire.MethodSetLevel, "level", level)
	}
	for _, uri := range uris {
		restore(wire.MethodSubscribe, "uri", uri)
	}
}

// silentError is why a session ends whose server does not answer health checks.
type silentError struct {
	since  time.Time // of the last message
	server string    // the transport
}

// Error says for how long the server has not answered.
func (e *silentError) Error() string {
	return fmt.Sprintf("not answering for %.0f s", time.Since(e.since).Seconds())
}

// hint says what to do about it.
func (e *silentError) hint() string {
	hint := "the server is " + e.Error() + ": it hangs, or is stopped or unreachable; restart it"
	if isZMQ(e.server) {
		hint += ". A backend must answer heartbeats also while it works; docs/backends.md"
	}
	return hint
}

// hintOf is the hint about a lost connection, or empty.
func hintOf(err error) string {
	var silent *silentError
	if errors.As(err, &silent) {
		return silent.hint()
	}
	return fault.HintOf(err)
}

// logReason is the text by which the log tells whether the reason of a failure is new.
func logReason(err error) string {
	var silent *silentError
	if errors.As(err, &silent) {
		return "not answering"
	}
	return err.Error()
}

// stillSilent returns the error of the session that ended because the server did not
// answer, as long as attempts to connect again get no answer either. Otherwise it is err.
func (c *connection) stillSilent(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var silent *silentError
	var start *startTimeoutError
	timedOut := fault.CodeOf(err) == fault.Timeout || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &start) || errors.Is(err, errNoProgress)
	if timedOut && errors.As(c.err, &silent) {
		return silent
	}
	return err
}

// abort fails the active calls with the reason why the session is about to be closed, if
// the transport can.
func (s *session) abort(why error) error {
	if t, ok := s.transport.(interface{ Abort(error) }); ok {
		t.Abort(errors.New(why.Error())) // its text grows with time
	}
	return why
}

// answersWhileBusy reports whether the server must answer health checks while calls are
// active.
func (s *session) answersWhileBusy() bool {
	t, ok := s.transport.(interface{ AnswersWhileBusy() bool })
	return ok && t.AnswersWhileBusy()
}

// lastMessage is when the last message of the server arrived.
func (s *session) lastMessage() time.Time {
	if t, ok := s.transport.(interface{ LastReceived() time.Time }); ok {
		return t.LastReceived()
	}
	return time.Unix(0, s.lastReceived.Load())
}

// describe returns the era and the revision for people. A backend has no era, and its
// revision is that of its own protocol.
func (s *session) describe() (era, revision string) {
	if t, ok := s.transport.(interface{ Protocol() string }); ok {
		return "", t.Protocol()
	}
	return s.era.String(), s.revision
}

// eraText is the era of a detected server for people.
func (d detection) eraText() string {
	if d.Era == wire.Unknown || isZMQ(d.Endpoint.Transport) {
		return ""
	}
	return d.Era.String()
}

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
		// Callers that wake the connection cannot make it retry, and start processes, in a loop.
		f.least = min(time.Duration(c.attempt)*20*time.Millisecond, 500*time.Millisecond)
		f.delay = max(c.opts.Backoff.Delay(c.backoffStep), f.least)
		switch {
		case auth:
			c.state, c.challenge, f.delay = StateNeedsAuth, challenge, c.opts.AuthRetry
		case c.isDenied(err):
			c.state, f.delay = StateNeedsAuth, c.spec.idle()
		case c.spec.Command != "" && (c.repeated.count >= finalRepetitions || c.attempt >= finalFailures):
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
