package upstream

import (
	"encoding/json"
	"time"
)

// State is the state of an upstream.
type State string

// The states. Connecting is the first attempt; all further attempts are
// Reconnecting.
const (
	StateConnecting   State = "connecting"
	StateConnected    State = "connected"
	StateReconnecting State = "reconnecting"
	StateNeedsAuth    State = "needs_auth"
	StateAsleep       State = "asleep" // lazy, and not needed now
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
	Challenge string    `json:"challenge,omitempty"` // WWW-Authenticate, in StateNeedsAuth
	Hint      string    `json:"hint,omitempty"`      // what to do about it

	Transport  string          `json:"transport,omitempty"`
	Era        string          `json:"era,omitempty"`
	Revision   string          `json:"revision,omitempty"`
	ServerInfo json.RawMessage `json:"server_info,omitempty"`

	Tools   int      `json:"tools"`
	Stale   bool     `json:"stale,omitempty"` // the tools are those of an earlier connection
	Dropped []string `json:"dropped,omitempty"`

	// Mistaken lists names in AllowedTools and DisabledTools that no tool has.
	Mistaken []string `json:"mistaken,omitempty"`

	Stats Stats `json:"stats"`

	Desired Spec `json:"-"` // contains secrets
}

// Stats counts the calls of one upstream since it was added.
type Stats struct {
	Calls    int64     `json:"calls"`
	Errors   int64     `json:"errors"` // calls that failed, for whatever reason
	InFlight int       `json:"in_flight"`
	LastTool string    `json:"last_tool,omitempty"`
	LastCall time.Time `json:"last_call,omitzero"`
}
