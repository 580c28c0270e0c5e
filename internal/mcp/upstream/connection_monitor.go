package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/luanette/luanette/internal/mcp/wire"
)

// errIdle ends a lazy server nobody has called for a while.
var errIdle = errors.New("idle")

// monitor watches over a connection until it is of no more use, and says why. It
// checks the server's health when it was silent for long or is in doubt, and
// lists its tools again when it says that they changed.
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
			// Whoever changes a long list without end gets a tenth of our attention.
			debounce = max(c.opts.Debounce, 10*time.Since(began))
		}
		if err != nil {
			return err
		}
	}
}

// nextHealthCheck is when to look at the server again unless something happens.
func (c *connection) nextHealthCheck(s *session) time.Duration {
	look := s.healthInterval() - s.sinceLastReceived()
	if spec := c.currentSpec(); spec.lazy() && spec.Idle > 0 {
		look = min(look, spec.Idle-c.sinceLastUse())
	}
	return max(look, 10*time.Millisecond)
}

// isIdle tells whether the server may go to sleep.
func (c *connection) isIdle(s *session) bool {
	spec := c.currentSpec()
	return spec.lazy() && spec.Idle > 0 && s.activeCalls() == 0 && c.sinceLastUse() >= spec.Idle
}

func (c *connection) sinceLastUse() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(c.lastUsed)
}

func (c *connection) currentSpec() Spec {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spec
}

// checkHealth asks for a sign of life. A server that owes answers to callers may be
// too busy to give one: those calls have their own limits, so it is left alone.
func (c *connection) checkHealth(ctx context.Context, s *session) error {
	err := s.checkHealth(ctx, c.opts.HealthTimeout)
	excused := ctx.Err() != nil || errors.Is(err, errNoProgress) && s.activeCalls() > 0
	if err != nil && !excused {
		return fmt.Errorf("health check: %w", err)
	}
	return nil
}

// refreshAfterNotification fetches the tools after a notification. A server that cannot list them
// just now keeps the old ones.
func (c *connection) refreshAfterNotification(ctx context.Context, s *session) error {
	err := c.refresh(ctx, s)
	var refused *wire.Error
	if err != nil && !errors.As(err, &refused) {
		return c.checkHealth(ctx, s)
	}
	return nil
}

// refresh fetches the tools of a session and installs them, if it still serves.
func (c *connection) refresh(ctx context.Context, s *session) error {
	c.refreshing.Lock()
	defer c.refreshing.Unlock()
	list, err := s.listTools(ctx, c.name, c.opts.ConnectTimeout)
	if err != nil {
		return err
	}
	c.setTools(list, func() bool { return c.session == s })
	return nil
}

// setTools makes list the one we serve, tells the house what changed, and keeps it
// for the next start. It does nothing of that when commit, which may alter the
// state with it, says that the list comes too late.
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
	added, removed, changed := diff(old.tools, list.tools)
	if len(added)+len(removed)+len(changed) > 0 {
		c.publish(ToolsRefreshed{Upstream: c.name, ToolCount: len(list.tools), Added: added, Removed: removed, Changed: changed})
	}
	if list.droppedCount > 0 {
		c.publish(Dropped{Upstream: c.name, Reasons: list.dropped, Count: list.droppedCount})
		c.log.Warn("definitions not usable", "count", list.droppedCount, "first", list.dropped[0])
	}
	c.saveCache()
}

// saveCache keeps what is known of the server for the next start.
func (c *connection) saveCache() {
	c.mu.Lock()
	s, retired := c.session, c.retired
	if s == nil || retired {
		c.mu.Unlock()
		return
	}
	c.cached = record{
		Server: identity(c.spec), Verdict: c.detected, Revision: s.revision,
		ServerInfo: s.serverInfo, Capabilities: s.capabilities, Instructions: s.instructions,
		Tools: definitions(c.tools.tools),
	}
	known := c.cached
	c.mu.Unlock()
	if err := c.opts.saveRecord(c.name, known); err != nil {
		c.log.Warn("not cached", "error", err)
	}
}

// notifyWatchers takes what a server says that belongs to no call.
func (c *connection) notifyWatchers(method string, params json.RawMessage) {
	if method == wire.NoteToolsChanged {
		signal(c.toolsChanged)
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

// restoreSubscriptions sets up in a new session what callers had asked of the old one.
func (c *connection) restoreSubscriptions(ctx context.Context, s *session) {
	c.mu.Lock()
	level := c.logLevel
	uris := make([]string, 0, len(c.subscribers))
	for uri := range c.subscribers {
		uris = append(uris, uri)
	}
	c.mu.Unlock()
	if level != "" {
		_, _ = s.perform(ctx, levelRequest(level, c.opts.HealthTimeout))
	}
	for _, uri := range uris {
		_, _ = s.perform(ctx, followRequest(wire.MethodSubscribe, uri, c.opts.HealthTimeout))
	}
}
