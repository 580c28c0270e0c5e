package tool

import (
	"encoding/json"
	"time"
)

// Task is work that continues after the call that started it has returned. Clients that
// support tasks refer to it by its id.
type Task struct {
	ID        string
	State     TaskState
	Message   string // progress or outcome; may be empty
	Created   time.Time
	Updated   time.Time                  // the last change
	TTL       time.Duration              // how long it is stored after its creation; 0: not known yet
	Result    Result                     // of a completed task: the result of the call
	Err       error                      // of a failed task: why there is no result
	Questions map[string]json.RawMessage // of a task that waits for input: MCP requests by key
}

// TaskState is the state of a task in MCP.
type TaskState string

// The states. The last three are final.
const (
	TaskWorking       TaskState = "working"
	TaskInputRequired TaskState = "input_required"
	TaskCompleted     TaskState = "completed" // also when the tool failed: its result says so
	TaskFailed        TaskState = "failed"
	TaskCancelled     TaskState = "cancelled"
)

// Final reports whether the state does not change any more.
func (s TaskState) Final() bool {
	return s == TaskCompleted || s == TaskFailed || s == TaskCancelled
}
