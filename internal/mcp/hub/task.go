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
	// WaitTask waits until a task is in a final state or, with orInput, asks for input.
	WaitTask(ctx context.Context, id string, orInput bool) (tool.Task, error)
	// ListTasks returns a page of all tasks, and the cursor of the next page, if any.
	ListTasks(ctx context.Context, cursor string) (tasks []tool.Task, next string, err error)
	// CancelTask cancels a task; one in a final state stays as it is.
	CancelTask(ctx context.Context, id string) error
	// AnswerTask passes answers by the keys of the questions. It ignores other keys.
	AnswerTask(ctx context.Context, id string, answers map[string]json.RawMessage) error
}

// RelayedTasks are the tasks of upstreams, under ids of ours.
type RelayedTasks interface {
	Tasks
	// Relays tells whether an id is that of such a task.
	Relays(id string) bool
	// Watch calls changed with each task that changes, one at a time, until stop is called.
	Watch(changed func(tool.Task)) (stop func())
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

// taskRequest is what a call says about a task: nil if the client takes none. wish is the
// member task of its params, with which revision 2025-11-25 asks for one.
func (req *request) taskRequest(wish json.RawMessage) *tool.TaskRequest {
	if req.ep.hub.opts.RelayedTasks == nil || !req.takesTask(wish) {
		return nil
	}
	ttl, _ := rawjson.Get(wish, "ttl")
	ms, _ := rawjson.Number(ttl)
	return &tool.TaskRequest{TTL: time.Duration(min(max(ms, 0), maxTTL) * float64(time.Millisecond))}
}

// maxTTL is the longest time in milliseconds for which a client can ask: a year.
const maxTTL = 365 * 24 * 3600 * 1000

// takesTask tells whether the client takes a task as the answer to a call.
func (req *request) takesTask(wish json.RawMessage) bool {
	if req.era == wire.Legacy && !rawjson.IsObject(wish) {
		return false
	}
	return req.knowsTasks()
}

// receipt is the answer to a call whose work continues as a task.
func (req *request) receipt(ctx context.Context, result tool.Result) (json.RawMessage, error) {
	wish, _ := rawjson.Get(req.params, "task")
	tasks := req.ep.tasks
	if !tasks.any() || !req.takesTask(wish) {
		if !rawjson.IsObject(result.Raw) {
			return nil, wire.NeedsTasks()
		}
		return result.Raw, nil
	}
	work, err := tasks.get(ctx, result.Task)
	if err != nil {
		return nil, err
	}
	if req.era == wire.Legacy {
		req.session.followTask(work.ID)
		return json.Marshal(map[string]any{"task": viewLegacyTask(work)})
	}
	seed := viewTask(work)
	seed.ResultType, seed.Result, seed.Error, seed.InputRequests = wire.ResultTask, nil, nil, nil
	return json.Marshal(seed)
}

// serveTasks answers the methods about tasks.
func (req *request) serveTasks(ctx context.Context) (json.RawMessage, error) {
	tasks := req.ep.tasks
	switch {
	case !tasks.any() || req.era == wire.Legacy && !req.knowsTasks():
		return nil, errNoMethod(req.method)
	case req.era == wire.Modern && req.method != wire.MethodTasksGet && req.method != wire.MethodTasksUpdate && req.method != wire.MethodTasksCancel:
		return nil, errNoMethod(req.method)
	case !req.knowsTasks():
		return nil, wire.NeedsTasks()
	case req.method == wire.MethodTasksList:
		return tasks.listPage(ctx, req)
	case taskID(req.params) == "":
		return nil, wire.Errorf(wire.CodeInvalidParams, "params need taskId, a string")
	}
	work, err := tasks.get(ctx, taskID(req.params))
	if err != nil {
		return nil, taskFailure(err)
	}
	if req.era == wire.Legacy {
		return req.serveLegacyTask(ctx, work)
	}
	switch req.method {
	case wire.MethodTasksGet:
		return json.Marshal(viewTask(answerable(work, req.caps)))
	case wire.MethodTasksUpdate:
		answers, err := inputResponses(req.params)
		if err != nil {
			return nil, err
		}
		return json.RawMessage("{}"), taskFailure(tasks.of(work.ID).AnswerTask(ctx, work.ID, answers))
	default:
		return json.RawMessage("{}"), taskFailure(tasks.of(work.ID).CancelTask(ctx, work.ID))
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

// serveLegacyTask answers a request of revision 2025-11-25 about a task.
func (req *request) serveLegacyTask(ctx context.Context, work tool.Task) (json.RawMessage, error) {
	tasks := req.ep.tasks
	req.session.followTask(work.ID)
	switch req.method {
	case wire.MethodTasksGet:
		return json.Marshal(viewLegacyTask(answerable(work, req.caps)))
	case wire.MethodTasksResult:
		return req.awaitTask(ctx, work.ID)
	case wire.MethodTasksCancel:
		if work.State.Final() {
			return nil, wire.Errorf(wire.CodeInvalidParams, "task %s is %s already", work.ID, work.State)
		}
		if err := tasks.of(work.ID).CancelTask(ctx, work.ID); err != nil {
			return nil, taskFailure(err)
		}
		work, err := tasks.get(ctx, work.ID)
		if err != nil {
			return nil, taskFailure(err)
		}
		return json.Marshal(viewLegacyTask(work))
	}
	return nil, errNoMethod(req.method)
}

// taskFailure gives errors about tasks the code that the protocol requires.
func taskFailure(err error) error {
	if fault.CodeOf(err) == fault.NotFound {
		return wire.Errorf(wire.CodeInvalidParams, "%s", err)
	}
	return err
}
