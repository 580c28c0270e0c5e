package approval

import (
	"context"
	"slices"

	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
)

// publish tells those who see a request of it: its owner, and the people who have its role
// or decide in the place of one who has.
func (o *Store) publish(ctx context.Context, a *Approval, p event.Payload) {
	readers, err := o.readers(ctx, a)
	o.warn(ctx, "those who decide not told", err)
	o.options.Events.PublishTo(a.owner(), readers, p)
}

func (o *Store) readers(ctx context.Context, a *Approval) (list []string, err error) {
	if a.Role == "" {
		return nil, nil
	}
	all, err := o.directory(ctx)
	if err != nil {
		return nil, err
	}
	substitutes, err := o.substitutes(ctx, all, a)
	for id := range all {
		if all.has(id, a.Org, a.Role) || slices.ContainsFunc(substitutes, func(d Delegation) bool { return d.To == id }) {
			list = append(list, principal.PersonID(id, a.Org))
		}
	}
	return list, err
}

// Requested is published when a run waits for a decision.
type Requested struct {
	ID      string `json:"approval_id"`
	Run     string `json:"run"`
	Name    string `json:"name,omitempty"`
	Owner   string `json:"owner,omitempty"`
	Subject string `json:"subject"`
	Entries int    `json:"entries"`          // of its plan
	Role    string `json:"role,omitempty"`   // those who decide must have it
	Needed  int    `json:"needed,omitempty"` // how many of them
}

// EventType is "approval.requested".
func (Requested) EventType() string { return "approval.requested" }

// EventKey is the approval's id.
func (e Requested) EventKey() string { return e.ID }

// Agreed is published when somebody has agreed, and others must too.
type Agreed struct {
	ID      string `json:"approval_id"`
	Run     string `json:"run"`
	Subject string `json:"subject"`
	By      string `json:"by"`
	Agreed  int    `json:"agreed"` // how many have
	Needed  int    `json:"needed"`
}

// EventType is "approval.agreed".
func (Agreed) EventType() string { return "approval.agreed" }

// EventKey is the approval's id.
func (e Agreed) EventKey() string { return e.ID }

// Settled is published when an approval is no longer pending.
type Settled struct {
	ID      string `json:"approval_id"`
	Run     string `json:"run"`
	Subject string `json:"subject"`
	State   State  `json:"status"`
	By      string `json:"by,omitempty"`
}

// EventType is "approval.settled".
func (Settled) EventType() string { return "approval.settled" }

// EventKey is the approval's id.
func (e Settled) EventKey() string { return e.ID }
