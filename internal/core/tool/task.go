package tool

import (
	"encoding/json"
	"time"
)

// Task is work that continues after the call that started it has returned. Clients that
// support tasks refer to it by its id.
type Task struct {
	ID        string
	Space     string // the namespace of the upstream whose task it is; "" for our own
	State     TaskState
	Message   string // progress or outcome; may be empty
	Created   time.Time
	Updated   time.Time                  // the last change
	TTL       time.Duration              // how long it is stored after its creation; 0: not known yet
	Result    Result                     // of a completed task: the result of the call
	Err       error                      // of a failed task: why there is no result
	Questions map[string]json.RawMessage // of a task that waits for input: MCP requests by key
	Poll      time.Duration              // how often to look at it; 0: no recommendation
}

// TaskRequest asks for a task in place of a call's result, where the tool supports that.
type TaskRequest struct {
	TTL time.Duration // how long the task should be stored after its creation; 0: not said
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
