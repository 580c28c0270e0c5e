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

// Tasks is work that goes on after the call that began it: what Result.Task
// names. (Within the hub a task is a request being worked on; this is about
// MCP's, which outlive requests.)
//
// Clients of the modern era know them by the extension io.modelcontextprotocol/tasks,
// which they declare with each request; those of revision 2025-11-25 ask for a
// task with the call itself. All others get the answer the tool gave.
type Tasks interface {
	// Task is one as it stands; fault.NotFound when there is none.
	Task(ctx context.Context, id string) (tool.Task, error)
	// WaitTask is one in a final state, or one that asks.
	WaitTask(ctx context.Context, id string) (tool.Task, error)
	// ListTasks is a part of all of them, and where the next part begins, if any.
	ListTasks(ctx context.Context, cursor string) (tasks []tool.Task, next string, err error)
	// CancelTask ends one; one that is over stays as it is.
	CancelTask(ctx context.Context, id string) error
	// AnswerTask brings answers by the keys of its questions. Others are ignored.
	AnswerTask(ctx context.Context, id string, answers map[string]json.RawMessage) error
}

// legacyTasks is the capability of revision 2025-11-25, in place of the extension.
const legacyTasks = `{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`

// pollInterval is how often clients are told to look.
const pollInterval = 500 * time.Millisecond

// knowsTasks tells whether the client of a request can be given a task.
func (req *request) knowsTasks() bool {
	if req.era == wire.Legacy {
		return req.version >= wire.Revision2511
	}
	extensions, _ := rawjson.Get(req.caps, "extensions")
	declared, _ := rawjson.Get(extensions, wire.ExtensionTasks)
	return rawjson.IsObject(declared)
}

// errNeedsTasks refuses a client that has to know tasks for what it wants.
func errNeedsTasks() error {
	return wire.Errorf(wire.CodeMissingCapability, "this request needs a client that declares the extension %s", wire.ExtensionTasks).
		WithData(map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{wire.ExtensionTasks: struct{}{}}}})
}

// receipt is the answer to a call whose work goes on.
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

// serveLegacyTasks answers them as revision 2025-11-25 has them.
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

// taskResult is what tasks/result of revision 2025-11-25 answers: the result of
// the call, marked with the task it belongs to.
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

// taskFailure gives errors about tasks the code the protocol wants.
func taskFailure(err error) error {
	if fault.CodeOf(err) == fault.NotFound {
		return wire.Errorf(wire.CodeInvalidParams, "%s", err)
	}
	return err
}

// modernTaskView is a task in the words of the extension.
type modernTaskView struct {
	ResultType     string                     `json:"resultType,omitempty"`
	TaskID         string                     `json:"taskId"`
	Status         tool.TaskState             `json:"status"`
	StatusMessage  string                     `json:"statusMessage,omitempty"`
	CreatedAt      string                     `json:"createdAt"`
	LastUpdatedAt  string                     `json:"lastUpdatedAt"`
	TTLMs          *int64                     `json:"ttlMs"` // null: for ever, as far as we know
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
		if _, typed := rawjson.Get(v.Result, "resultType"); !typed { // a modern result says that it is one
			v.Result = rawjson.SetText(v.Result, "resultType", wire.ResultComplete)
		}
	case tool.TaskFailed:
		v.Error = wire.ErrorFrom(work.Err)
	case tool.TaskInputRequired:
		v.InputRequests = work.Questions
	}
	return v
}

// legacyTaskView is a task in the words of revision 2025-11-25.
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
		v.Status = tool.TaskFailed // that revision calls it so
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
