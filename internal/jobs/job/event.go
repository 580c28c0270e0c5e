package job

// Submitted is published when a job was stored.
type Submitted struct {
	ID      string   `json:"job_id"`
	Name    string   `json:"name,omitempty"`
	Creator string   `json:"creator,omitempty"`
	Tags    []string `json:"tags,omitempty"`
}

// EventType is "job.submitted".
func (Submitted) EventType() string { return "job.submitted" }

// EventKey is the job's id.
func (e Submitted) EventKey() string { return e.ID }

// Started is published when a job starts, or continues after a restart.
type Started struct {
	ID      string `json:"job_id"`
	Name    string `json:"name,omitempty"`
	Creator string `json:"creator,omitempty"`
	Resumed bool   `json:"resumed,omitempty"` // its journal was not empty
}

// EventType is "job.started".
func (Started) EventType() string { return "job.started" }

// EventKey is the job's id.
func (e Started) EventKey() string { return e.ID }

// Paused is published when a job waits for approval.
type Paused struct {
	ID       string `json:"job_id"`
	Name     string `json:"name,omitempty"`
	Creator  string `json:"creator,omitempty"`
	Approval string `json:"approval_id"`
	Subject  string `json:"subject"`
}

// EventType is "job.paused".
func (Paused) EventType() string { return "job.paused" }

// EventKey is the job's id.
func (e Paused) EventKey() string { return e.ID }

// Progressed is published when a job reports its progress.
type Progressed struct {
	ID       string  `json:"job_id"`
	Fraction float64 `json:"fraction"`
	Message  string  `json:"message,omitempty"`
}

// EventType is "job.progress".
func (Progressed) EventType() string { return "job.progress" }

// EventKey is the job's id.
func (e Progressed) EventKey() string { return e.ID }

// Finished is published when a job ends.
type Finished struct {
	ID      string `json:"job_id"`
	Name    string `json:"name,omitempty"`
	Creator string `json:"creator,omitempty"`
	State   State  `json:"status"`
	Error   string `json:"error,omitempty"`
	TookMS  int64  `json:"took_ms"`
}

// EventType is "job.finished".
func (Finished) EventType() string { return "job.finished" }

// EventKey is the job's id.
func (e Finished) EventKey() string { return e.ID }
