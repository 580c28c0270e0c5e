package profile

import "time"

// What was refused, for Refusal.Action.
const (
	Reading    = "read"
	Writing    = "write"
	Executing  = "execute"
	Connecting = "connect" // Object is host:port
	Calling    = "call"    // of the kernel; Object names the system call
)

// Refusal is something that a program tried and its profile does not allow.
type Refusal struct {
	Time   time.Time
	Name   string // of the Profile
	Action string
	Object string
}
