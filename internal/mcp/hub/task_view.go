package hub

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// taskResult is the answer to tasks/result of revision 2025-11-25: the result of the call
// with the task's id in its _meta.
func taskResult(work tool.Task) (json.RawMessage, error) {
	switch {
	case work.State == tool.TaskCancelled:
		return nil, wire.Errorf(wire.CodeInvalidParams, "task %s was cancelled", work.ID)
	case work.Err != nil:
		return nil, work.Err
	case !rawjson.IsObject(work.Result.Raw):
		return nil, fault.New(fault.Internal, "task %s has no result", work.ID)
	}
	meta := rawjson.Set(wire.Meta(work.Result.Raw), wire.MetaRelatedTask, rawjson.SetText(nil, "taskId", work.ID))
	return wire.SetMeta(work.Result.Raw, meta), nil
}

// modernTaskView is a task in the form of the extension.
type modernTaskView struct {
	ResultType     string                     `json:"resultType,omitempty"`
	TaskID         string                     `json:"taskId"`
	Status         tool.TaskState             `json:"status"`
	StatusMessage  string                     `json:"statusMessage,omitempty"`
	CreatedAt      string                     `json:"createdAt"`
	LastUpdatedAt  string                     `json:"lastUpdatedAt"`
	TTLMs          *int64                     `json:"ttlMs"` // null: no limit
	PollIntervalMs int64                      `json:"pollIntervalMs"`
	Result         json.RawMessage            `json:"result,omitempty"`
	Error          *wire.Error                `json:"error,omitempty"`
	InputRequests  map[string]json.RawMessage `json:"inputRequests,omitempty"`
}

func viewTask(work tool.Task) modernTaskView {
	v := modernTaskView{
		TaskID: work.ID, Status: work.State, StatusMessage: work.Message, CreatedAt: stamp(work.Created), LastUpdatedAt: stamp(work.Updated),
		TTLMs: taskTTL(work), PollIntervalMs: taskPoll(work),
	}
	switch work.State {
	case tool.TaskCompleted:
		v.Result = work.Result.Raw
		if _, typed := rawjson.Get(v.Result, "resultType"); !typed { // modern results have a type
			v.Result = rawjson.SetText(v.Result, "resultType", wire.ResultComplete)
		}
	case tool.TaskFailed:
		v.Error = wire.ErrorFrom(work.Err)
	case tool.TaskInputRequired:
		v.InputRequests = work.Questions
	}
	return v
}

// legacyTaskView is a task in the form of revision 2025-11-25.
type legacyTaskView struct {
	TaskID        string         `json:"taskId"`
	Status        tool.TaskState `json:"status"`
	StatusMessage string         `json:"statusMessage,omitempty"`
	CreatedAt     string         `json:"createdAt"`
	LastUpdatedAt string         `json:"lastUpdatedAt"`
	TTL           *int64         `json:"ttl"`
	PollInterval  int64          `json:"pollInterval"`
}

func viewLegacyTask(work tool.Task) legacyTaskView {
	v := legacyTaskView{
		work.ID, work.State, work.Message, stamp(work.Created), stamp(work.Updated), taskTTL(work), taskPoll(work),
	}
	if failed := rawjson.GetBool(work.Result.Raw, "isError"); failed && work.State == tool.TaskCompleted {
		v.Status = tool.TaskFailed // as that revision defines it
	}
	return v
}

func taskTTL(work tool.Task) *int64 {
	if work.TTL == 0 {
		return nil
	}
	ms := work.TTL.Milliseconds()
	return &ms
}

func taskPoll(work tool.Task) int64 { return cmp.Or(work.Poll, pollInterval).Milliseconds() }

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }
