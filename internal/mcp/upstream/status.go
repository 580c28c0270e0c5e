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

// State is the state of an upstream.
type State string

// The states. Connecting is the first attempt, or the wait for the turn to start;
// further attempts to reach a URL are Reconnecting. Whenever a process runs and has
// not answered yet, it is Starting.
const (
	StateConnecting   State = "connecting"
	StateStarting     State = "starting"
	StateConnected    State = "connected"
	StateReconnecting State = "reconnecting"
	StateNeedsAuth    State = "needs_auth"
	StateAsleep       State = "asleep" // lazy, and not needed now
	StateFailed       State = "failed" // its process ended the same way several times; attempts are rare
)

// Status is the desired and the actual state of an upstream.
type Status struct {
	Name       string `json:"name"`
	Target     string `json:"target"`
	Generation uint64 `json:"generation"` // increases with every change that reconnects

	State     State     `json:"state"`
	Since     time.Time `json:"since"`
	Attempt   int       `json:"attempt,omitempty"`    // failures in a row
	LastError string    `json:"last_error,omitempty"` // of the last attempt or connection; empty when connected
	NextTry   time.Time `json:"next_try,omitzero"`
	Queued    bool      `json:"queued,omitempty"`    // its process waits until others have started
	LastLine  string    `json:"last_line,omitempty"` // what a process that is starting last wrote to its standard error
	Challenge string    `json:"challenge,omitempty"` // WWW-Authenticate, in StateNeedsAuth
	Hint      string    `json:"hint,omitempty"`      // what to do about it

	Transport  string          `json:"transport,omitempty"`
	Era        string          `json:"era,omitempty"`
	Revision   string          `json:"revision,omitempty"`
	ServerInfo json.RawMessage `json:"server_info,omitempty"`

	Tools   int      `json:"tools"`
	Stale   bool     `json:"stale,omitempty"` // the tools are those of an earlier connection
	Dropped []string `json:"dropped,omitempty"`
	// Trouble is what is wrong although the server is connected: tools that cannot be
	// listed, a list that was cut, definitions that were left out.
	Trouble []string `json:"trouble,omitempty"`

	// Mistaken lists names in AllowedTools and DisabledTools that no tool has.
	Mistaken []string `json:"mistaken,omitempty"`

	// Simulated says what is not real about it: a recording, injected faults; also that it
	// is being recorded.
	Simulated []string `json:"simulated,omitempty"`

	Login  string `json:"login,omitempty"`  // whose account calls use; empty if all share one connection
	People int    `json:"people,omitempty"` // how many principals have a connection of their own now

	Stats Stats `json:"stats"`

	Desired Spec `json:"-"` // contains secrets
}

// Attempted reports whether the first attempt to connect is over.
func (s Status) Attempted() bool {
	first := s.State == StateConnecting || s.State == StateStarting
	return !first || s.Attempt > 0
}

// Stats counts the calls of one upstream since it was added.
type Stats struct {
	Calls    int64     `json:"calls"`
	Errors   int64     `json:"errors"` // calls that failed, for whatever reason
	InFlight int       `json:"in_flight"`
	LastTool string    `json:"last_tool,omitempty"`
	LastCall time.Time `json:"last_call,omitzero"`

	Connects  int64     `json:"connects"`           // how often it was connected
	Connected time.Time `json:"connected,omitzero"` // when it was for the first time
}

// status is the current state of the upstream.
func (c *connection) status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := Status{
		Name: c.name, Target: c.spec.Target(), Generation: c.generation,
		State: c.state, Since: c.since,
		Transport: c.detected.Endpoint.Transport, Revision: c.cached.Revision, ServerInfo: c.cached.ServerInfo,
		Tools: len(c.allowedTools()), Stale: c.stale, Dropped: c.tools.problems(), Trouble: c.tools.trouble(),
		Stats: c.stats, Desired: c.spec, Mistaken: c.unknownToolNames(), Simulated: c.spec.simulated(),
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
			st.Hint = fmt.Sprintf("it starts when one of %d other programs has started (starts.parallel)", c.opts.ParallelStarts)
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

// The events of this package. Their key is the name of the upstream.

// Connecting reports that a first attempt begins.
type Connecting struct {
	Upstream string `json:"upstream"`
	Target   string `json:"target"`
}

// Connected reports that a server is connected and its tools are listed.
type Connected struct {
	Upstream  string `json:"upstream"`
	ToolCount int    `json:"tool_count"`
	Era       string `json:"era"`
	Revision  string `json:"revision"`
}

// SlowStart reports that a process has been starting for a while.
type SlowStart struct {
	Upstream string `json:"upstream"`
	Seconds  int    `json:"seconds"`
	LastLine string `json:"last_line,omitempty"` // of its standard error
	Hint     string `json:"hint"`
}

// Failed reports that the process of a server ended the same way several times. Until
// somebody asks for it, the next attempt follows after the delay.
type Failed struct {
	Upstream string `json:"upstream"`
	Attempt  int    `json:"attempt"`
	DelayMS  int64  `json:"delay_ms"`
	Error    string `json:"error"`
}

// Reconnecting reports that a connection was lost or an attempt failed; the next attempt
// follows after the delay. Of attempts that fail for the same reason only the first
// few and then ever fewer are reported; Attempt counts them all.
type Reconnecting struct {
	Upstream string `json:"upstream"`
	Attempt  int    `json:"attempt"`
	DelayMS  int64  `json:"delay_ms"`
	Error    string `json:"error"`
	Hint     string `json:"hint,omitempty"` // what to do about it
}

// Lost reports that a server that was connected is not any more. Reconnecting follows.
type Lost struct {
	Upstream string `json:"upstream"`
	Error    string `json:"error"`
}

// NeedsAuth reports that a server requires credentials.
type NeedsAuth struct {
	Upstream  string `json:"upstream"`
	Error     string `json:"error"`
	Challenge string `json:"challenge,omitempty"` // WWW-Authenticate, as the server sent it
	Hint      string `json:"hint,omitempty"`      // what to do about it
}

// Asleep reports that a lazy server is not running.
type Asleep struct {
	Upstream string `json:"upstream"`
}

// Removed reports that an upstream was removed.
type Removed struct {
	Upstream string `json:"upstream"`
}

// ToolsRefreshed reports that the list of tools has changed, because it was fetched, found in
// the cache, or the spec now allows other tools.
type ToolsRefreshed struct {
	Upstream  string   `json:"upstream"`
	ToolCount int      `json:"tool_count"`
	Added     []string `json:"added,omitempty"`
	Removed   []string `json:"removed,omitempty"`
	Changed   []string `json:"changed,omitempty"`
}

// Dropped reports that a server sent unusable tool definitions.
type Dropped struct {
	Upstream string   `json:"upstream"`
	Reasons  []string `json:"reasons"` // the first few
	Count    int      `json:"count"`
}

// Stderr is a line that a child process wrote to its standard error.
type Stderr struct {
	Upstream string `json:"upstream"`
	Line     string `json:"line"`
}

// Garbage is something that a server sent and that is not a message.
type Garbage struct {
	Upstream string `json:"upstream"`
	Excerpt  string `json:"excerpt"`
}

func (Connecting) EventType() string     { return "upstream.connecting" }
func (Connected) EventType() string      { return "upstream.connected" }
func (SlowStart) EventType() string      { return "upstream.slow_start" }
func (Failed) EventType() string         { return "upstream.failed" }
func (Reconnecting) EventType() string   { return "upstream.reconnecting" }
func (Lost) EventType() string           { return "upstream.lost" }
func (NeedsAuth) EventType() string      { return "upstream.needs_auth" }
func (Asleep) EventType() string         { return "upstream.asleep" }
func (Removed) EventType() string        { return "upstream.removed" }
func (ToolsRefreshed) EventType() string { return "upstream.tools_refreshed" }
func (Dropped) EventType() string        { return "upstream.dropped" }
func (Stderr) EventType() string         { return "upstream.stderr" }
func (Garbage) EventType() string        { return "upstream.garbage" }

func (e Connecting) EventKey() string     { return e.Upstream }
func (e Connected) EventKey() string      { return e.Upstream }
func (e SlowStart) EventKey() string      { return e.Upstream }
func (e Failed) EventKey() string         { return e.Upstream }
func (e Reconnecting) EventKey() string   { return e.Upstream }
func (e Lost) EventKey() string           { return e.Upstream }
func (e NeedsAuth) EventKey() string      { return e.Upstream }
func (e Asleep) EventKey() string         { return e.Upstream }
func (e Removed) EventKey() string        { return e.Upstream }
func (e ToolsRefreshed) EventKey() string { return e.Upstream }
func (e Dropped) EventKey() string        { return e.Upstream }
func (e Stderr) EventKey() string         { return e.Upstream }
func (e Garbage) EventKey() string        { return e.Upstream }
