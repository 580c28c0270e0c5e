package upstream

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/tool"
)

// status is the current state of the upstream.
func (c *connection) status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := Status{
		Name: c.name, Target: c.spec.Target(), Generation: c.generation,
		State: c.state, Since: c.since,
		Transport: c.detected.Endpoint.Transport, Revision: c.cached.Revision, ServerInfo: c.cached.ServerInfo,
		Tools: len(c.allowedTools()), Stale: c.stale, Dropped: c.tools.problems(), Trouble: c.tools.trouble(),
		Stats: c.stats, Desired: c.spec.clone(), Mistaken: c.unknownToolNames(), Simulated: c.spec.simulated(),
	}
	st.Era = c.detected.eraText()
	if c.state != StateConnected {
		st.Attempt, st.NextTry = c.attempt, c.next
		if c.err != nil {
			st.LastError, st.Hint = c.err.Error(), hintOf(c.err)
		}
	}
	c.addStateDetails(&st)
	return st
}

// addStateDetails adds what only some states have; c.mu is held.
func (c *connection) addStateDetails(st *Status) {
	switch c.state {
	case StateNeedsAuth:
		st.Challenge = c.challenge
		st.Hint = fault.HintOf(c.needsAuthError(c.err, c.challenge))
	case StateFailed:
		st.Hint = c.failedHint()
	case StateStarting:
		st.NextTry, st.LastLine = time.Time{}, c.start.lastLine
		if time.Since(c.since) >= slowStart {
			st.Hint = c.startHint()
		}
	case StateConnecting, StateReconnecting:
		if st.Queued = c.start.turn != nil; st.Queued {
			st.Hint = fmt.Sprintf("it starts when one of %d other programs has started (upstreams.parallel_starts)", c.opts.ParallelStarts)
		}
	}
}

// visibleTools lists the allowed tools in the order of their names. It returns the
// same slice until something changes, so that callers can compare cheaply.
func (c *connection) visibleTools() []tool.Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	offered := c.offers()
	if c.view.of == offered && c.view.stale == c.stale {
		return c.view.tools
	}
	tools := c.allowed(offered.tools)
	if c.stale {
		tools = slices.Clone(tools)
		for i := range tools {
			tools[i].Stale = true
		}
	}
	c.view = toolView{of: offered, stale: c.stale, tools: tools}
	return tools
}

// toolView is the result of visibleTools, and what it was made of.
type toolView struct {
	of    *toolList
	stale bool
	tools []tool.Info
}

// allowedTools is the list without the tools that the spec forbids; c.mu is held.
func (c *connection) allowedTools() []tool.Info { return c.allowed(c.tools.tools) }

// allowed is a list without the tools that the spec forbids; c.mu is held.
func (c *connection) allowed(tools []tool.Info) []tool.Info {
	if !c.spec.restricts() {
		return tools
	}
	var allowed []tool.Info
	for _, info := range tools {
		if c.spec.permits(info.Name) && (!c.spec.ReadOnly || info.Hints.ReadOnly) {
			allowed = append(allowed, info)
		}
	}
	return allowed
}

// unknownToolNames finds names in the spec that no tool has; c.mu is held.
func (c *connection) unknownToolNames() []string {
	if len(c.spec.AllowedTools)+len(c.spec.DisabledTools) == 0 || len(c.tools.tools) == 0 {
		return nil
	}
	names := make([]string, len(c.tools.tools))
	for i := range c.tools.tools {
		names[i] = c.tools.tools[i].Name
	}
	var found []string
	for _, setting := range []struct {
		name string
		list []string
	}{{"allowed_tools", c.spec.AllowedTools}, {"disabled_tools", c.spec.DisabledTools}} {
		for _, name := range setting.list {
			if slices.Contains(names, name) {
				continue
			}
			problem := fmt.Sprintf("%s: it has no tool %q", setting.name, name)
			if near := suggest.Names(name, names, 1); len(near) > 0 {
				problem += fmt.Sprintf("; did you mean %s?", near[0])
			}
			found = append(found, problem)
		}
	}
	return found
}

// adjust replaces the spec by one that needs no new connection.
func (c *connection) adjust(spec Spec) {
	c.mu.Lock()
	before, roots := c.allowedTools(), c.spec.Roots
	c.spec, c.view, c.ownOf = spec, toolView{}, nil
	after := c.allowedTools()
	c.mu.Unlock()
	if !slices.Equal(roots, spec.Roots) {
		c.sendRootsChanged()
	}
	added, removed, _ := diff(before, after)
	if len(added)+len(removed) > 0 {
		c.publish(ToolsRefreshed{Upstream: c.name, ToolCount: len(after), Added: added, Removed: removed})
	}
	c.retryNow() // its owner may have repaired what was wrong
}

// inheritFrom takes the statistics, subscriptions and log level of the previous
// generation and, if the server is the same, what is known about it.
func (c *connection) inheritFrom(old *connection) {
	old.mu.Lock()
	stats, subscribers, level := old.stats, maps.Clone(old.subscribers), old.logLevel
	same := old.spec.sameServer(c.currentSpec())
	detected, cached, tools, lists, lastStartOK := old.detected, old.cached, old.tools, maps.Clone(old.lists), old.lastStartOK
	old.mu.Unlock()
	c.update(func() {
		stats.InFlight = 0
		stats.Connects += c.stats.Connects // it may be connected already
		c.stats, c.subscribers, c.logLevel = stats, subscribers, level
		if same {
			c.lists = lists
		}
		if same && c.session == nil {
			c.detected, c.cached, c.tools, c.stale, c.lastStartOK = detected, cached, tools, true, lastStartOK
		}
	})
}

// watch sets or, with nil, removes a watcher.
func (c *connection) watch(id int, f func(string, json.RawMessage)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f == nil {
		delete(c.watchers, id)
		return
	}
	c.watchers[id] = f
}
