package upstream

// The events of this room. Upstream is the name of the one that is meant, and
// their key.

// Connecting says that a first attempt begins.
type Connecting struct {
	Upstream string `json:"upstream"`
	Target   string `json:"target"`
}

// Connected says that a server is there and its tools are listed.
type Connected struct {
	Upstream  string `json:"upstream"`
	ToolCount int    `json:"tool_count"`
	Era       string `json:"era"`
	Revision  string `json:"revision"`
}

// Reconnecting says that a connection was lost or an attempt came to nothing,
// and when the next one is.
type Reconnecting struct {
	Upstream string `json:"upstream"`
	Attempt  int    `json:"attempt"`
	DelayMS  int64  `json:"delay_ms"`
	Error    string `json:"error"`
}

// NeedsAuth says that a server wants credentials.
type NeedsAuth struct {
	Upstream  string `json:"upstream"`
	Error     string `json:"error"`
	Challenge string `json:"challenge,omitempty"` // WWW-Authenticate, as the server sent it
	Hint      string `json:"hint,omitempty"`      // what to do about it
}

// Asleep says that a lazy server is not running.
type Asleep struct {
	Upstream string `json:"upstream"`
}

// Removed says that an upstream is no longer wanted.
type Removed struct {
	Upstream string `json:"upstream"`
}

// ToolsRefreshed says that the list is another than before: it was fetched, found
// in the cache, or the spec now permits other tools.
type ToolsRefreshed struct {
	Upstream  string   `json:"upstream"`
	ToolCount int      `json:"tool_count"`
	Added     []string `json:"added,omitempty"`
	Removed   []string `json:"removed,omitempty"`
	Changed   []string `json:"changed,omitempty"`
}

// Dropped says that definitions of a server were not usable.
type Dropped struct {
	Upstream string   `json:"upstream"`
	Reasons  []string `json:"reasons"` // the first few
	Count    int      `json:"count"`
}

// Stderr is a line a child process wrote to its standard error.
type Stderr struct {
	Upstream string `json:"upstream"`
	Line     string `json:"line"`
}

// Garbage is something a server sent that is no message.
type Garbage struct {
	Upstream string `json:"upstream"`
	Excerpt  string `json:"excerpt"`
}

func (Connecting) EventType() string     { return "upstream.connecting" }
func (Connected) EventType() string      { return "upstream.connected" }
func (Reconnecting) EventType() string   { return "upstream.reconnecting" }
func (NeedsAuth) EventType() string      { return "upstream.needs_auth" }
func (Asleep) EventType() string         { return "upstream.asleep" }
func (Removed) EventType() string        { return "upstream.removed" }
func (ToolsRefreshed) EventType() string { return "upstream.tools_refreshed" }
func (Dropped) EventType() string        { return "upstream.dropped" }
func (Stderr) EventType() string         { return "upstream.stderr" }
func (Garbage) EventType() string        { return "upstream.garbage" }

func (e Connecting) EventKey() string     { return e.Upstream }
func (e Connected) EventKey() string      { return e.Upstream }
func (e Reconnecting) EventKey() string   { return e.Upstream }
func (e NeedsAuth) EventKey() string      { return e.Upstream }
func (e Asleep) EventKey() string         { return e.Upstream }
func (e Removed) EventKey() string        { return e.Upstream }
func (e ToolsRefreshed) EventKey() string { return e.Upstream }
func (e Dropped) EventKey() string        { return e.Upstream }
func (e Stderr) EventKey() string         { return e.Upstream }
func (e Garbage) EventKey() string        { return e.Upstream }
