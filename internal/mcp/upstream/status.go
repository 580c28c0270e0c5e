package upstream

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// State is the state of an upstream.
type State string

// The states. Connecting is the first attempt, or the wait for the turn to start;
// further attempts to reach a URL are Reconnecting. Whenever a process runs and has
// not answered yet, it is Starting.
const (
	StateConnecting   State = "connecting"
	StateInstalling   State = "installing" // its package is being installed
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

	Package    string          `json:"package,omitempty"` // that is installed for it: name and version
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
	first := slices.Contains([]State{StateConnecting, StateInstalling, StateStarting}, s.State)
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

// counter counts the calls of a connection. Its lock is its own.
type counter struct {
	mu    sync.Mutex
	stats Stats
}

func (n *counter) now() Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stats
}

// begin counts a call; one that is not counted is only in flight.
func (n *counter) begin(tool string, counted bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stats.InFlight++
	if counted {
		n.stats.Calls++
		n.stats.LastTool, n.stats.LastCall = tool, time.Now()
	}
}

func (n *counter) end(failed, counted bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stats.InFlight--
	if failed && counted {
		n.stats.Errors++
	}
}

func (n *counter) connected() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stats.Connects++; n.stats.Connected.IsZero() {
		n.stats.Connected = time.Now()
	}
}

// inherit takes over from the connection that this one replaces.
func (n *counter) inherit(old *counter) {
	stats := old.now()
	n.mu.Lock()
	defer n.mu.Unlock()
	stats.InFlight = 0
	stats.Connects += n.stats.Connects // it may be connected already
	n.stats = stats
}

// status is the current state of the upstream.
func (c *connection) status() Status {
	now := c.phase.now() // before the rest: see known
	spec := c.spec.Load()
	st := Status{
		Name: c.name, Target: spec.Target(), Generation: c.generation, State: now.state, Since: now.since,
		Package: now.pkg, Stats: c.stats.now(), Desired: *spec, Simulated: spec.simulated(),
	}
	c.known.describe(&st)
	if now.state != StateConnected {
		st.Attempt, st.NextTry = now.attempt, now.next
		if now.err != nil {
			st.LastError, st.Hint = now.err.Error(), hintOf(now.err)
		}
	}
	switch now.state {
	case StateNeedsAuth:
		st.Challenge = now.challenge
		st.Hint = fault.HintOf(c.needsAuthError(now.err, now.challenge))
	case StateFailed:
		st.Hint = c.failedHint(now)
	case StateStarting:
		st.NextTry, st.LastLine = time.Time{}, now.lastLine
		if time.Since(now.since) >= slowStart {
			st.Hint = c.startHint(now)
		}
	case StateInstalling:
		st.NextTry, st.LastLine = time.Time{}, now.lastLine
	case StateConnecting, StateReconnecting:
		if st.Queued = now.queued; st.Queued {
			st.Hint = fmt.Sprintf("it starts when one of %d other programs has started (starts.parallel)", c.opts.ParallelStarts)
		}
	}
	return st
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

// Installing reports what is being done to install the package of a server.
type Installing struct {
	Upstream string `json:"upstream"`
	Doing    string `json:"doing"`
}

// Installed reports that the package of a server was installed.
type Installed struct {
	Upstream string `json:"upstream"`
	Package  string `json:"package"`
	Version  string `json:"version"`
	Seconds  int    `json:"seconds"`
	Repaired bool   `json:"repaired,omitempty"` // it was broken
}

// Upgraded reports that another version of the package of a server is in effect. It is started anew.
type Upgraded struct {
	Upstream string `json:"upstream"`
	Package  string `json:"package"`
	From     string `json:"from"` // version
	To       string `json:"to"`
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

// ListsRefreshed reports that the resources, templates or prompts of a server have changed.
type ListsRefreshed struct {
	Upstream  string `json:"upstream"`
	Prompts   int    `json:"prompts"`
	Resources int    `json:"resources"`
	Templates int    `json:"templates"`
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
func (Installing) EventType() string     { return "upstream.installing" }
func (Installed) EventType() string      { return "upstream.installed" }
func (Upgraded) EventType() string       { return "upstream.upgraded" }
func (SlowStart) EventType() string      { return "upstream.slow_start" }
func (Failed) EventType() string         { return "upstream.failed" }
func (Reconnecting) EventType() string   { return "upstream.reconnecting" }
func (Lost) EventType() string           { return "upstream.lost" }
func (NeedsAuth) EventType() string      { return "upstream.needs_auth" }
func (Asleep) EventType() string         { return "upstream.asleep" }
func (Removed) EventType() string        { return "upstream.removed" }
func (ToolsRefreshed) EventType() string { return "upstream.tools_refreshed" }
func (ListsRefreshed) EventType() string { return "upstream.lists_refreshed" }
func (Dropped) EventType() string        { return "upstream.dropped" }
func (Stderr) EventType() string         { return "upstream.stderr" }
func (Garbage) EventType() string        { return "upstream.garbage" }

func (e Connecting) EventKey() string     { return e.Upstream }
func (e Connected) EventKey() string      { return e.Upstream }
func (e Installing) EventKey() string     { return e.Upstream }
func (e Installed) EventKey() string      { return e.Upstream }
func (e Upgraded) EventKey() string       { return e.Upstream }
func (e SlowStart) EventKey() string      { return e.Upstream }
func (e Failed) EventKey() string         { return e.Upstream }
func (e Reconnecting) EventKey() string   { return e.Upstream }
func (e Lost) EventKey() string           { return e.Upstream }
func (e NeedsAuth) EventKey() string      { return e.Upstream }
func (e Asleep) EventKey() string         { return e.Upstream }
func (e Removed) EventKey() string        { return e.Upstream }
func (e ToolsRefreshed) EventKey() string { return e.Upstream }
func (e ListsRefreshed) EventKey() string { return e.Upstream }
func (e Dropped) EventKey() string        { return e.Upstream }
func (e Stderr) EventKey() string         { return e.Upstream }
func (e Garbage) EventKey() string        { return e.Upstream }
