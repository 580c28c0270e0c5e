package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// run keeps the upstream connected until ctx ends. It begins when previous is
// closed.
func (c *connection) run(ctx context.Context, previous <-chan struct{}) {
	defer close(c.stopped)
	defer c.life.wait()
	if !c.opts.OnDemand && c.owner == "" { // then start has loaded it
		c.loadCache()
	}
	<-previous
	if c.listsOnly() && !c.spec.Load().canList() {
		c.phase.sleep(nil)
		<-ctx.Done()
		return
	}
	for ctx.Err() == nil {
		if c.phase.now().state == StateAsleep && !c.waitForUse(ctx) {
			return
		}
		connected, served, err := c.serve(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case c.ends(err):
			c.end(c)
		case errors.Is(err, errIdle):
			c.phase.sleep(nil)
		case errors.Is(err, errRenewed):
			c.log.InfoContext(ctx, "connecting again, as its secrets have changed")
		case c.unused(), c.refusesListing(err):
			c.phase.sleep(err)
		default:
			c.waitToReconnect(ctx, err, connected, served)
		}
	}
}

// waitForUse waits until a caller needs the server. It reports false if ctx ends.
func (c *connection) waitForUse(ctx context.Context) bool {
	c.publish(Asleep{Upstream: c.name})
	select {
	case <-c.phase.wake:
		c.phase.awake()
		return true
	case <-ctx.Done():
		return false
	}
}

// serve connects, and stays until the connection ends. served reports whether it was of use.
func (c *connection) serve(ctx context.Context) (connected, served bool, err error) {
	s, err := c.connect(ctx)
	if err != nil {
		return false, false, c.phase.attemptFailed(err)
	}
	began := time.Now()
	err = c.monitor(ctx, s)
	served = s.answeredCaller.Load() || time.Since(began) > time.Second || c.stats.now().Calls > s.callsBefore
	c.clearSession(s)
	s.noteEnd(ctx, began, err)
	c.leave(s)
	return true, served, err
}

// connect makes one attempt, which includes the list of tools.
func (c *connection) connect(ctx context.Context) (*session, error) {
	spec := c.spec.Load()
	if c.phase.now().attempt == 0 {
		c.publish(Connecting{Upstream: spec.Name, Target: spec.Target()})
	}
	c.noteSecrets(*spec)
	a, err := c.connectAttempt(ctx, *spec)
	if err != nil {
		return nil, err
	}
	if err := a.findPackage(ctx); err != nil {
		return nil, err
	}
	end, err := c.beginStart(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	calls, began := c.stats.now().Calls, time.Now()
	s, err := a.open(ctx, c.known.stored().Detected.Endpoint)
	if a.repair(ctx, err) {
		s, err = a.open(ctx, c.known.stored().Detected.Endpoint)
	}
	if err != nil {
		return nil, a.startError(err)
	}
	s.callsBefore = calls
	drain(c.checkNow) // a request of an earlier session
	s.openSubscription(ctx, a.hooks)
	tools, err := c.listTools(ctx, s)
	if err != nil {
		return nil, s.abandon(err)
	}
	s.measureStart(*spec, a.spec.installed, time.Since(began))
	c.useSession(s, tools)
	c.restoreSession(ctx, s)
	if !c.opts.OnDemand { // otherwise it is connected for one call
		s.life.run(func(ctx context.Context) { c.followOffering(ctx, s) })
	}
	return s, nil
}

// hooks publish what a transport reports, at limited rates.
func (c *connection) hooks() Hooks {
	lines, garbage, broadcasts := rateLimit{perSecond: 100}, rateLimit{perSecond: 10}, rateLimit{perSecond: 1000}
	return Hooks{
		CheckHealth: func() { signal(c.checkNow) },
		Relist:      func() { signal(c.toolsChanged) },
		Stderr: func(line string) {
			if !stackFrame().MatchString(line) {
				c.phase.setLastLine(line)
			}
			if lines.allow(time.Now()) {
				c.publish(Stderr{c.name, line})
				c.log.Debug("stderr", "line", line)
			}
		},
		Garbage: func(text string) {
			if garbage.allow(time.Now()) {
				c.publish(Garbage{c.name, text})
				c.log.Debug("not a message", "text", text)
			}
		},
		Broadcast: func(kind string, data json.RawMessage) {
			if broadcasts.allow(time.Now()) {
				c.publish(newBroadcast(c.name, kind, data))
			}
		},
	}
}

// useSession makes s the session that calls use.
func (c *connection) useSession(s *session, tools *listing) {
	before := c.known.connected(s, tools)
	c.phase.connected(s)
	c.stats.connected()
	c.announceTools(before, tools)
	era, revision := s.describe()
	c.publish(Connected{Upstream: c.name, ToolCount: len(tools.tools), Era: era, Revision: revision})
	c.log.Info("connected", "protocol", revision, "tools", len(tools.tools), "transport", s.endpoint.Transport)
}

// errIdle ends the session of a lazy server that has not been called for a while.
var errIdle = errors.New("idle")

// monitor watches a session until it ends or is unusable, and returns the reason.
// It checks the server's health when the server has been silent for long or may be
// down, and lists its tools again when they have changed.
func (c *connection) monitor(ctx context.Context, s *session) error {
	health := time.NewTimer(c.nextHealthCheck(s))
	defer health.Stop()
	secrets, stop := c.lookAtSecrets()
	defer stop()
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
		case <-secrets:
			if c.secretsChanged() && s.renew() {
				err = errRenewed
			}
		case <-s.idle:
			if s.renew() {
				err = errRenewed
			}
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
	if idle := c.idle(); idle > 0 {
		next = min(next, idle-c.phase.sinceLastUse())
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

// clearSession makes sure that no further call uses s.
func (c *connection) clearSession(s *session) {
	c.known.lost(s)
	c.phase.lost(s)
}

// failSession ends a session that a caller found unusable.
func (c *connection) failSession(s *session, err error) {
	c.clearSession(s)
	select {
	case s.failed <- err:
	default:
	}
}

// stop ends the connection. It returns at once; stopped is closed when it has ended.
func (c *connection) stop(why error) {
	c.retire()
	c.life.end(why)
}

// Why a connection ends that is not wanted any more.
var (
	errRemoved    = errors.New("the upstream was removed")
	errReplaced   = errors.New("the upstream was restarted or its settings were changed")
	errOwnerEnded = errors.New("the caller's connection was ended")
	errShutDown   = errors.New("the server was shut down")
)

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

// waitToReconnect reports why an attempt or a session ended, and waits until the
// next attempt is due or a caller needs the server.
func (c *connection) waitToReconnect(ctx context.Context, err error, connected, served bool) {
	f := c.phase.failed(err, served)
	if connected {
		c.publish(Lost{Upstream: c.name, Error: err.Error()})
	}
	c.reportFailure(ctx, f)
	waiting, stop := context.WithCancel(ctx)
	c.life.run(func(context.Context) { c.awaitSecrets(waiting) })
	c.phase.awaitRetry(ctx, f)
	stop()
	if c.isDenied(err) && c.unused() {
		c.end(c)
	}
}

// reportFailure logs and publishes a failure. Of many for the same reason it
// publishes the first few, and then each whose number is a power of two: a server
// that is down for a week makes a handful of events.
func (c *connection) reportFailure(ctx context.Context, f failure) {
	level, message, text := slog.LevelDebug, "disconnected", f.err.Error()
	switch {
	case f.final:
		level, message = slog.LevelWarn, "does not start; attempts are rare now"
	case f.changed:
		level = slog.LevelInfo
	}
	c.log.Log(ctx, level, message, "attempt", f.attempt, "retry_in", f.delay, "error", f.err) //nolint:sloglint // one of two constants
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
	idle := c.idle()
	settled := s.settled.Load() || c.spec.Load().lazy()
	return idle > 0 && settled && s.activeCalls() == 0 && c.phase.sinceLastUse() >= idle
}

// unused reports whether no caller waits any more for a lazy server that cannot be
// started.
func (c *connection) unused() bool {
	return c.spec.Load().lazy() && (c.owner != "" || c.known.stored().Server != "") &&
		c.phase.sinceLastUse() > c.opts.ConnectTimeout && !c.phase.hasWaiters()
}

// ends reports whether the connection of a principal ends, rather than sleeps, after err.
func (c *connection) ends(err error) bool {
	return c.owner != "" && (errors.Is(err, errIdle) || c.unused())
}

// refusesListing reports whether the server does not list its tools without a login: then
// it is not asked again until there may be one.
func (c *connection) refusesListing(err error) bool {
	_, auth := isAuthError(err)
	return auth && c.listsOnly()
}
