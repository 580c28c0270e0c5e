package upstream

import (
	"encoding/json"
	"time"
)

// State is where an upstream stands.
type State string

// The states. Connecting is the first attempt; after that it is Reconnecting,
// for as long as it takes.
const (
	StateConnecting   State = "connecting"
	StateConnected    State = "connected"
	StateReconnecting State = "reconnecting"
	StateNeedsAuth    State = "needs_auth"
	StateAsleep       State = "asleep" // lazy, and nobody needs it just now
)

// Status is an upstream as it is wanted and as it is.
type Status struct {
	Name       string `json:"name"`
	Target     string `json:"target"`
	Generation uint64 `json:"generation"` // grows with every change that reconnects

	State     State     `json:"state"`
	Since     time.Time `json:"since"`
	Attempt   int       `json:"attempt,omitempty"`    // failures in a row
	LastError string    `json:"last_error,omitempty"` // of the last attempt or loss; empty when connected
	NextTry   time.Time `json:"next_try,omitzero"`
	Challenge string    `json:"challenge,omitempty"` // WWW-Authenticate, in StateNeedsAuth
	Hint      string    `json:"hint,omitempty"`      // what to do about it

	Transport  string          `json:"transport,omitempty"`
	Era        string          `json:"era,omitempty"`
	Revision   string          `json:"revision,omitempty"`
	ServerInfo json.RawMessage `json:"server_info,omitempty"`

	Tools   int      `json:"tools"`
	Stale   bool     `json:"stale,omitempty"` // the list is from before the connection was lost
	Dropped []string `json:"dropped,omitempty"`

	// Mistaken tells of names in AllowedTools and DisabledTools that no tool has.
	Mistaken []string `json:"mistaken,omitempty"`

	Stats Stats `json:"stats"`

	Desired Spec `json:"-"` // holds secrets
}

// Stats counts the calls of one upstream since it was added.
type Stats struct {
	Calls    int64     `json:"calls"`
	Errors   int64     `json:"errors"` // calls that failed, in whatever way
	InFlight int       `json:"in_flight"`
	LastTool string    `json:"last_tool,omitempty"`
	LastCall time.Time `json:"last_call,omitzero"`
}
