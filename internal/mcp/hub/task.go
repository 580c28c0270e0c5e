package hub

import (
	"context"
	"encoding/json"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// Tasks are MCP's tasks: work that continues after the call that began it, which
// tool.Result.Task names.
//
// Clients of the modern era declare the extension io.modelcontextprotocol/tasks with each
// request; those of revision 2025-11-25 request a task with the call. All others get the
// tool's own result.
type Tasks interface {
	// Task returns the current state of a task; fault.NotFound if there is none.
	Task(ctx context.Context, id string) (tool.Task, error)
	// WaitTask waits until a task is in a final state or asks for input.
	WaitTask(ctx context.Context, id string) (tool.Task, error)
	// ListTasks returns a page of all tasks, and the cursor of the next page, if any.
	ListTasks(ctx context.Context, cursor string) (tasks []tool.Task, next string, err error)
	// CancelTask cancels a task; one in a final state stays as it is.
	CancelTask(ctx context.Context, id string) error
	// AnswerTask passes answers by the keys of the questions. It ignores other keys.
	AnswerTask(ctx context.Context, id string, answers map[string]json.RawMessage) error
}

// legacyTasks is the capability of revision 2025-11-25, in place of the extension.
const legacyTasks = `{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`

// pollInterval is how often clients should poll.
const pollInterval = 500 * time.Millisecond

// knowsTasks tells whether the client of a request supports tasks.
func (req *request) knowsTasks() bool {
	if req.era == wire.Legacy {
		return req.version >= wire.Revision2511
	}
	extensions, _ := rawjson.Get(req.caps, "extensions")
	declared, _ := rawjson.Get(extensions, wire.ExtensionTasks)
	return rawjson.IsObject(declared)
}

// errNeedsTasks refuses a request that only clients with tasks can make.
func errNeedsTasks() error {
	return wire.Errorf(wire.CodeMissingCapability, "this request needs a client that declares the extension %s", wire.ExtensionTasks).
		WithData(map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{wire.ExtensionTasks: struct{}{}}}})
}

// receipt is the answer to a call whose work continues as a task.
func (o *localBackend) receipt(ctx context.Context, req *request, result tool.Result) (json.RawMessage, error) {
	wanted := req.knowsTasks()
	if req.era == wire.Legacy {
		augmented, _ := rawjson.Get(req.params, "task")
		wanted = wanted && rawjson.IsObject(augmented)
	}
	if !wanted || o.hub.opts.Tasks == nil {
		if !rawjson.IsObject(result.Raw) {
			return nil, errNeedsTasks()
		}
		return result.Raw, nil
	}
	work, err := o.hub.opts.Tasks.Task(ctx, result.Task)
	if err != nil {
		return nil, err
	}
	if req.era == wire.Legacy {
		return json.Marshal(map[string]any{"task": viewLegacyTask(work)})
	}
	seed := viewTask(work)
	seed.ResultType, seed.Result, seed.Error, seed.InputRequests = wire.ResultTask, nil, nil, nil
	return json.Marshal(seed)
}

// serveTasks answers the methods about tasks.
func (o *localBackend) serveTasks(ctx context.Context, req *request) (json.RawMessage, error) {
	tasks := o.hub.opts.Tasks
	switch {
	case tasks == nil || req.era == wire.Legacy && !req.knowsTasks():
		return nil, errNoMethod(req.method)
	case req.era == wire.Modern && req.method != wire.MethodTasksGet && req.method != wire.MethodTasksUpdate && req.method != wire.MethodTasksCancel:
		return nil, errNoMethod(req.method)
	case !req.knowsTasks():
		return nil, errNeedsTasks()
	case req.method != wire.MethodTasksList && taskID(req.params) == "":
		return nil, wire.Errorf(wire.CodeInvalidParams, "params need taskId, a string")
	case req.era == wire.Legacy:
		return o.serveLegacyTasks(ctx, req)
	}
	switch req.method {
	case wire.MethodTasksGet:
		work, err := tasks.Task(ctx, taskID(req.params))
		if err != nil {
			return nil, taskFailure(err)
		}
		return json.Marshal(viewTask(work))
	case wire.MethodTasksUpdate:
		answers, err := inputResponses(req.params)
		if err != nil {
			return nil, err
		}
		return json.RawMessage("{}"), taskFailure(tasks.AnswerTask(ctx, taskID(req.params), answers))
	default:
		return json.RawMessage("{}"), taskFailure(tasks.CancelTask(ctx, taskID(req.params)))
	}
}

func taskID(params json.RawMessage) string {
	id, _ := rawjson.GetText(params, "taskId")
	return id
}

func inputResponses(params json.RawMessage) (map[string]json.RawMessage, error) {
	raw, _ := rawjson.Get(params, "inputResponses")
	if !rawjson.IsObject(raw) {
		return nil, wire.Errorf(wire.CodeInvalidParams, "params need inputResponses, an object")
	}
	answers := map[string]json.RawMessage{}
	rawjson.Each(raw, func(key string, value json.RawMessage) bool {
		answers[key] = value
		return true
	})
	return answers, nil
}

// serveLegacyTasks answers the methods of revision 2025-11-25.
func (o *localBackend) serveLegacyTasks(ctx context.Context, req *request) (json.RawMessage, error) {
	tasks := o.hub.opts.Tasks
	switch req.method {
	case wire.MethodTasksList:
		return o.listTasks(ctx, req)
	case wire.MethodTasksResult:
		work, err := tasks.WaitTask(ctx, taskID(req.params))
		if err != nil {
			return nil, taskFailure(err)
		}
		return taskResult(work)
	case wire.MethodTasksCancel:
		work, err := tasks.Task(ctx, taskID(req.params))
		if err == nil && work.State.Final() {
			return nil, wire.Errorf(wire.CodeInvalidParams, "task %s is %s already", taskID(req.params), work.State)
		}
		if err == nil {
			err = tasks.CancelTask(ctx, taskID(req.params))
		}
		if err != nil {
			return nil, taskFailure(err)
		}
	case wire.MethodTasksGet:
	default:
		return nil, errNoMethod(req.method)
	}
	work, err := tasks.Task(ctx, taskID(req.params))
	if err != nil {
		return nil, taskFailure(err)
	}
	return json.Marshal(viewLegacyTask(work))
}

func (o *localBackend) listTasks(ctx context.Context, req *request) (json.RawMessage, error) {
	cursor, _ := rawjson.GetText(req.params, "cursor")
	all, next, err := o.hub.opts.Tasks.ListTasks(ctx, cursor)
	if err != nil {
		return nil, err
	}
	page := struct {
		Tasks []legacyTaskView `json:"tasks"`
		Next  string           `json:"nextCursor,omitempty"`
	}{[]legacyTaskView{}, next}
	for _, work := range all {
		page.Tasks = append(page.Tasks, viewLegacyTask(work))
	}
	return json.Marshal(page)
}

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

// taskFailure gives errors about tasks the code that the protocol requires.
func taskFailure(err error) error {
	if fault.CodeOf(err) == fault.NotFound {
		return wire.Errorf(wire.CodeInvalidParams, "%s", err)
	}
	return err
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
		TTLMs: taskTTL(work), PollIntervalMs: pollInterval.Milliseconds(),
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
		work.ID, work.State, work.Message, stamp(work.Created), stamp(work.Updated), taskTTL(work), pollInterval.Milliseconds(),
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

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }
