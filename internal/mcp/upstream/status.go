package upstream

import (
	"encoding/json"
	"time"
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
