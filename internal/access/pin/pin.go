package pin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"
)

// Kind is what sort of thing is pinned.
type Kind string

// The kinds.
const (
	Tool         Kind = "tool"
	Prompt       Kind = "prompt"
	Instructions Kind = "instructions" // what a server tells models about itself; it has no name
)

// State is where a pin stands.
type State string

// The states. Only what is approved can be used.
const (
	AwaitingReview State = "held"    // new
	Changed        State = "changed" // another definition, or another server, than was approved
	Approved       State = "approved"
	Refused        State = "refused"
)

// States are all of them.
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

// Pin is one definition of an upstream and what somebody decided about it. It is
// not changed once others can see it.
type Pin struct {
	ID       string
	Upstream string
	Kind     Kind
	Name     string

	Target     string          // the server it was last offered by
	Digest     string          // of what is offered
	Definition json.RawMessage // canonical JSON
	Flags      []Finding

	ApprovedDigest string // "" before somebody approved
	ApprovedTarget string
	ApprovedAs     json.RawMessage
	RefusedDigest  string

	Seen    time.Time
	Changed time.Time // when what is offered last became another
	Decided time.Time // zero before
	By      string
}

func (p *Pin) key() key { return key{p.Upstream, p.Kind, p.Name} }

// State is where the pin stands.
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
