package profile

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// What was refused, for Refusal.Action.
const (
	Reading    = "read"
	Writing    = "write"
	Executing  = "execute"
	Connecting = "connect" // Object is host:port
	Calling    = "call"    // of the kernel; Object names the system call
	Using      = "use"     // of more than a limit allows
)

// unixPrefix begins the object of a connection to a Unix socket.
const unixPrefix = "unix:"

// Refusal is something that a program tried and its profile does not allow. It is an
// event, too.
type Refusal struct {
	Time   time.Time `json:"time"`
	Name   string    `json:"name"` // of the Profile
	Action string    `json:"action"`
	Object string    `json:"object"`
	Allow  string    `json:"allow,omitempty"` // the line of the configuration that would allow it
}

// EventType is "sandbox.refused".
func (Refusal) EventType() string { return "sandbox.refused" }

// EventKey is the name of the profile.
func (r Refusal) EventKey() string { return r.Name }

// String says what was refused: "files was refused read of /home/u/.ssh/id_ed25519".
func (r Refusal) String() string {
	switch r.Action {
	case Connecting:
		return r.Name + " was refused a connection to " + r.Object
	case Calling:
		return r.Name + " was refused the system call " + r.Object
	}
	return r.Name + " was refused " + r.Action + " of " + r.Object
}

// NewRefusal returns a refusal with the line that would allow it.
func NewRefusal(at time.Time, p Profile, action, object string) Refusal {
	r := Refusal{Time: at, Name: p.Name, Action: action, Object: object}
	switch {
	case action == Reading || action == Executing && !within(object, p.Write):
		r.Allow = "read = [" + quote(object) + "]"
	case action == Writing:
		r.Allow = "write = [" + quote(filepath.Dir(object)) + "]"
	case action == Executing || object == "memfd_create":
		r.Allow = "exec = true"
	case strings.HasPrefix(object, unixPrefix):
		r.Allow = "sockets = true"
	case action == Connecting:
		r.Allow = "network = [" + quote(object) + "]"
	}
	return r
}

func within(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") })
}

// quote is a text as TOML writes it, which has the escapes of JSON.
func quote(text string) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a text is always possible
	return strings.TrimSuffix(out.String(), "\n")
}
