package approval

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
