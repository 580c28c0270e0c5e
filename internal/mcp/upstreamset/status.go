package upstreamset

import "time"

// Status is the state of an upstream.
type Status struct {
	Namespace    string
	Endpoint     string // URL or command, without secrets
	Transport    string
	Protocol     string // the revision spoken, when connected
	State        string // connecting, connected, reconnecting, needs_auth …
	Tools        int
	Stale        bool // the list is from before the connection was lost
	Error        string
	Hint         string // what a person can do about it
	Login        string // where a person can log in; empty if a login does not help
	Attempt      int    // failures in a row
	NextTry      time.Time
	Fixed        bool      // it comes from configuration, so a tool may not change its URL
	Origin       string    // config, startup (startup.lua) or added (while running, on all nodes)
	ConfiguredAt string    // file:line, of the configuration
	By           string    // who added, changed or removed it last
	Changed      time.Time // and when
	Warnings     []string  // settings that do not match its tools
}
