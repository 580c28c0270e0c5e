package webhook

// Received is published when a delivery was accepted.
type Received struct {
	Hook     string `json:"hook"`
	Delivery string `json:"delivery,omitempty"`
	Job      string `json:"job_id"`
	Repeated bool   `json:"repeated,omitempty"` // it came before, and started nothing
}

// EventType is "webhook.received".
func (Received) EventType() string { return "webhook.received" }

// EventKey is the job's id.
func (e Received) EventKey() string { return e.Job }

// Refused is published when a request to a hook was refused.
type Refused struct {
	Hook   string `json:"hook"`
	Reason string `json:"reason"`
}

// EventType is "webhook.refused".
func (Refused) EventType() string { return "webhook.refused" }

// EventKey is the hook's name.
func (e Refused) EventKey() string { return e.Hook }
