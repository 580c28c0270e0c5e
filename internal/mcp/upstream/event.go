package upstream

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
