package tool

import (
	"encoding/json"
	"time"
)

// Task is work that goes on after the call that began it was answered. Clients
// that know tasks follow it by its id.
type Task struct {
	ID        string
	State     TaskState
	Message   string                     // what it is doing, or what became of it; may be empty
	Created   time.Time                  // and
	Updated   time.Time                  // when it changed last
	TTL       time.Duration              // how long it is kept, counted from its creation; 0 when that is not known yet
	Result    Result                     // of a completed one: what the call would have answered, had it waited
	Err       error                      // of a failed one: what kept the call from being answered at all
	Questions map[string]json.RawMessage // of one that waits for input: its questions by key, as MCP's requests
}

// TaskState is where a task stands, in MCP's words.
type TaskState string

// The states. The last three are final.
const (
	TaskWorking       TaskState = "working"
	TaskInputRequired TaskState = "input_required"
	TaskCompleted     TaskState = "completed" // also when the tool failed: its result says so
	TaskFailed        TaskState = "failed"
	TaskCancelled     TaskState = "cancelled"
)

// Final tells whether nothing more happens in this state.
func (s TaskState) Final() bool {
	return s == TaskCompleted || s == TaskFailed || s == TaskCancelled
}
