package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

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
	if level != "" {
		_, _ = s.request(ctx, levelRequest(level, c.opts.HealthTimeout))
	}
	for _, uri := range uris {
		_, _ = s.request(ctx, subscribeRequest(uri, c.opts.HealthTimeout))
	}
}
