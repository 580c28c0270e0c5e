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
