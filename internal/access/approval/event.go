package approval

// Requested is published when a run waits for a decision.
type Requested struct {
	ID      string `json:"approval_id"`
	Run     string `json:"run"`
	Name    string `json:"name,omitempty"`
	Owner   string `json:"owner,omitempty"`
	Subject string `json:"subject"`
	Entries int    `json:"entries"` // of its plan
}

// EventType is "approval.requested".
func (Requested) EventType() string { return "approval.requested" }

// EventKey is the approval's id.
func (e Requested) EventKey() string { return e.ID }

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
