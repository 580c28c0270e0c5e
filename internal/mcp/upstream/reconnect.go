package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

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
	if spec := c.spec.Load(); spec.lazy() && spec.idle() > 0 {
		next = min(next, spec.idle()-c.phase.sinceLastUse())
	}
	return max(next, 10*time.Millisecond)
}

// checkHealth sends a health check. A timeout does not count while calls are active,
// unless the server must answer then too: it may be too busy, and calls have their own
// timeouts.
func (c *connection) checkHealth(ctx context.Context, s *session) error {
	err := s.checkHealth(ctx, c.opts.HealthTimeout)
	silent := errors.Is(err, errNoProgress)
	mayBeBusy := s.traits.AnswersWhileBusy == nil || !s.traits.AnswersWhileBusy()
	switch {
	case err == nil, ctx.Err() != nil, silent && mayBeBusy && s.activeCalls() > 0:
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
		c.refreshTools(s, c.known.refused(refused))
	case err != nil:
		return c.checkHealth(ctx, s)
	}
	return nil
}

// refresh fetches the tools of a session, and uses them if it is still current.
func (c *connection) refresh(ctx context.Context, s *session) error {
	c.refreshing.Lock()
	defer c.refreshing.Unlock()
	list, err := s.listTools(ctx, c.name, c.opts.startTimeout(*c.spec.Load()))
	if err != nil {
		return err
	}
	c.refreshTools(s, list)
	return nil
}

// refreshTools uses a further list of a session, if that is still the current one.
func (c *connection) refreshTools(s *session, list *listing) {
	if before := c.known.refreshed(s, list); before != nil {
		c.announceTools(before, list)
	}
}

// announceTools publishes what is new in a list, and stores it in the cache.
func (c *connection) announceTools(old, list *listing) {
	if c.owner != "" {
		c.saveCache() // before anybody is told that the owner's tools are others
	} else {
		defer c.saveCache()
	}
	c.publishTools(old.tools, list.tools)
	if problems := list.problems(); len(problems) > 0 && !slices.Equal(problems, old.problems()) {
		count := len(list.incomplete) + list.droppedCount
		c.publish(Dropped{Upstream: c.name, Reasons: problems, Count: count})
		c.log.Warn("tools are missing", "count", count, "first", problems[0])
	}
}

// notified takes notifications of the server that belong to no call.
func (c *connection) notified(method string, params json.RawMessage) {
	switch method {
	case wire.NoteToolsChanged:
		signal(c.toolsChanged)
	case wire.NoteTask, wire.NoteTaskStatus:
		c.followed.note(params)
		return
	}
	c.watchers.tell(c.key(), method, params)
}

// restoreSession sets the log level and the resource subscriptions of the last session in a
// new one.
func (c *connection) restoreSession(ctx context.Context, s *session) {
	restore := func(method, key, value string) {
		_, _ = s.request(ctx, &outcall{method: method, params: rawjson.SetText(nil, key, value), timeout: c.opts.HealthTimeout})
	}
	level, uris := c.restored.session()
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

// abort fails the active calls with the reason why the session is about to be closed, if
// the transport can.
func (s *session) abort(why error) error {
	if s.traits.Abort != nil {
		s.traits.Abort(errors.New(why.Error())) // its text grows with time
	}
	return why
}

// lastMessage is when the last message of the server arrived.
func (s *session) lastMessage() time.Time {
	if s.traits.LastReceived != nil {
		return s.traits.LastReceived()
	}
	return time.Unix(0, s.lastReceived.Load())
}

// describe returns the era and the revision for people. A backend has no era, and its
// revision is that of its own protocol.
func (s *session) describe() (era, revision string) {
	if s.traits.Protocol != nil {
		return "", s.traits.Protocol()
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
// next attempt is due or a caller needs the server.
func (c *connection) waitToReconnect(ctx context.Context, err error, connected, served bool) {
	f := c.phase.failed(err, served)
	if connected {
		c.publish(Lost{Upstream: c.name, Error: err.Error()})
	}
	c.reportFailure(ctx, f)
	c.phase.awaitRetry(ctx, f)
	if c.isDenied(err) && c.unused() {
		c.end(c)
	}
}

// reportFailure logs and publishes a failure. Of many for the same reason it
// publishes the first few, and then each whose number is a power of two: a server
// that is down for a week makes a handful of events.
func (c *connection) reportFailure(ctx context.Context, f failure) {
	level, text := slog.LevelDebug, f.err.Error()
	if f.changed {
		level = slog.LevelInfo
	}
	c.log.Log(ctx, level, "disconnected", "attempt", f.attempt, "retry_in", f.delay, "error", f.err)
	rare := f.attempt > finalRepetitions && f.attempt&(f.attempt-1) != 0 && !f.changed
	switch {
	case rare:
	case f.state == StateNeedsAuth:
		hint := fault.HintOf(c.needsAuthError(f.err, f.challenge))
		c.publish(NeedsAuth{Upstream: c.name, Error: text, Challenge: f.challenge, Hint: hint})
	case f.state == StateFailed:
		c.publish(Failed{Upstream: c.name, Attempt: f.attempt, DelayMS: f.delay.Milliseconds(), Error: text})
	default:
		c.publish(Reconnecting{Upstream: c.name, Attempt: f.attempt, DelayMS: f.delay.Milliseconds(), Error: text, Hint: hintOf(f.err)})
	}
}

// isIdle reports whether the server may go to sleep.
func (c *connection) isIdle(s *session) bool {
	spec := c.spec.Load()
	return spec.lazy() && spec.idle() > 0 && s.activeCalls() == 0 && c.phase.sinceLastUse() >= spec.idle() &&
		(c.owner == "" || !c.restored.hasSubscribers())
}

// unused reports whether no caller waits any more for a lazy server that cannot be
// started.
func (c *connection) unused() bool {
	return c.spec.Load().lazy() && (c.owner != "" || c.known.stored().Server != "") &&
		c.phase.sinceLastUse() > c.opts.ConnectTimeout && !c.phase.hasWaiters()
}
