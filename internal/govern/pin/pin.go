package pin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// Kind is what is pinned.
type Kind string

// The kinds.
const (
	Tool         Kind = "tool"
	Prompt       Kind = "prompt"
	Skill        Kind = "skill"        // with the digests of its files; its name is its URI
	Instructions Kind = "instructions" // the server's instructions to models; they have no name
)

// State is the state of a pin.
type State string

// The states. Only approved definitions can be used.
const (
	AwaitingReview State = "held"    // new
	Changed        State = "changed" // differs from what was approved, or comes from another server
	Approved       State = "approved"
	Refused        State = "refused"
)

// States are all states.
func States() []State { return []State{AwaitingReview, Changed, Approved, Refused} }

type key struct {
	upstream string
	kind     Kind
	name     string
}

func (k key) id() string {
	sum := sha256.Sum256([]byte(k.upstream + "\x00" + string(k.kind) + "\x00" + k.name))
	return "p-" + hex.EncodeToString(sum[:6])
}

// Pin is one definition of an upstream and the decision about it. It is not changed
// once it is shared.
type Pin struct {
	ID       string
	Upstream string
	Kind     Kind
	Name     string

	Target     string          // the server that offers it
	Digest     string          // of the offered definition
	Definition json.RawMessage // canonical JSON
	Flags      []Finding

	ApprovedDigest string // "" before the first approval
	ApprovedTarget string
	ApprovedAs     json.RawMessage
	RefusedDigest  string

	Seen    time.Time
	Changed time.Time // when the offered definition last changed
	Decided time.Time // zero: not yet
	By      string
}

func (p *Pin) key() key { return key{p.Upstream, p.Kind, p.Name} }

// State is the state of the pin.
func (p *Pin) State() State {
	switch {
	case p.ApprovedDigest == p.Digest && p.ApprovedTarget == p.Target:
		return Approved
	case p.RefusedDigest == p.Digest:
		return Refused
	case p.ApprovedDigest != "":
		return Changed
	default:
		return AwaitingReview
	}
}

// ToolAwaitingReview is published when a definition awaits review or was refused.
type ToolAwaitingReview struct {
	Pin      string    `json:"pin"`
	Upstream string    `json:"upstream"`
	Kind     Kind      `json:"kind"`
	Name     string    `json:"name"`
	Digest   string    `json:"digest"`
	Flags    []Finding `json:"flags,omitempty"`
}

// EventType is "tool.held".
func (ToolAwaitingReview) EventType() string { return "tool.held" }

// EventKey is the pin's id.
func (e ToolAwaitingReview) EventKey() string { return e.Pin }

// ToolChanged is published when an approved definition has changed and awaits review
// again.
type ToolChanged struct {
	ToolAwaitingReview
	Changes []Change `json:"changes"`
}

// EventType is "tool.changed".
func (ToolChanged) EventType() string { return "tool.changed" }

// PinDecided is published when a definition was approved or refused.
type PinDecided struct {
	Pin      string `json:"pin"`
	Upstream string `json:"upstream"`
	Kind     Kind   `json:"kind"`
	Name     string `json:"name"`
	State    State  `json:"state"`
	By       string `json:"by"`
}

// EventType is "pin.decided".
func (PinDecided) EventType() string { return "pin.decided" }

// EventKey is the pin's id.
func (e PinDecided) EventKey() string { return e.Pin }

// ToolFlagged is published when the scanner found something in a definition that is
// used nevertheless.
type ToolFlagged struct {
	Upstream string    `json:"upstream"`
	Name     string    `json:"name"`
	Flags    []Finding `json:"flags"`
}

// EventType is "tool.flagged".
func (ToolFlagged) EventType() string { return "tool.flagged" }

// EventKey is the tool's full name.
func (e ToolFlagged) EventKey() string { return e.Upstream + "." + e.Name }

// ToolShadowed is published when a tool is refused because its name imitates another.
type ToolShadowed struct {
	Upstream string `json:"upstream"`
	Name     string `json:"name"`
	Shadows  string `json:"shadows"`
}

// EventType is "tool.shadowed".
func (ToolShadowed) EventType() string { return "tool.shadowed" }

// EventKey is the tool's full name.
func (e ToolShadowed) EventKey() string { return e.Upstream + "." + e.Name }
