package pin

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
