package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// TaskKeeper stores the tasks that servers start for callers who asked for a task.
type TaskKeeper interface {
	// KeepTask stores a task and returns the id under which its caller finds it.
	KeepTask(ctx context.Context, task StartedTask) (id string, err error)
}

// StartedTask is a task that a server has started in answer to a call.
type StartedTask struct {
	Ref    tool.Ref
	Caller *tool.Caller // may be nil
	Task   tool.Task    // its id is the server's
}

// taskSupport says whether calls of a tool can be tasks.
type taskSupport uint8

const (
	taskNever    taskSupport = iota
	taskOptional             // as the caller likes
	taskRequired             // the server refuses other calls
)

// findTaskSupport notes which tools of a server of the sessions era can be called as
// tasks. What a definition says counts only if the server has declared that it has tasks.
func (l *toolList) findTaskSupport(capabilities json.RawMessage) {
	tasks, _ := rawjson.Get(capabilities, "tasks")
	requests, _ := rawjson.Get(tasks, "requests")
	tools, _ := rawjson.Get(requests, "tools")
	if call, _ := rawjson.Get(tools, "call"); !rawjson.IsObject(call) {
		return
	}
	l.tasks = map[string]taskSupport{}
	for i := range l.tools {
		execution, _ := rawjson.Get(l.tools[i].Raw, "execution")
		switch support, _ := rawjson.GetText(execution, "taskSupport"); support {
		case "optional":
			l.tasks[l.tools[i].Name] = taskOptional
		case "required":
			l.tasks[l.tools[i].Name] = taskRequired
		}
	}
}

// hasTasksExtension reports whether a modern server answers calls with tasks.
func (s *session) hasTasksExtension() bool {
	return s != nil && s.era == wire.Modern && s.hasCapability("extensions", wire.ExtensionTasks)
}

// needsTasks reports whether a modern server refuses a call because it would be a task.
func needsTasks(err error) bool {
	var refused *wire.Error
	if !errors.As(err, &refused) || refused.Code != wire.CodeMissingCapability {
		return false
	}
	required, _ := rawjson.Get(refused.Data, "requiredCapabilities")
	extensions, _ := rawjson.Get(required, "extensions")
	_, found := rawjson.Get(extensions, wire.ExtensionTasks)
	return found
}

// taskParams are the params of a call that is made as a task. Only servers of the
// sessions era expect it there.
func (s *session) taskParams(r *request) json.RawMessage {
	if s.era != wire.Legacy || r.method != wire.MethodToolsCall {
		return r.params
	}
	wish := json.RawMessage("{}")
	if r.taskTTL > 0 {
		wish = rawjson.Set(wish, "ttl", strconv.AppendInt(nil, r.taskTTL.Milliseconds(), 10))
	}
	return rawjson.Set(r.params, "task", wish)
}

// finishTaskCall makes the result of a call that was made as a task: the id of the
// task, if the caller wants it and it can be stored, else the result it ends with.
func (c *connection) finishTaskCall(ctx context.Context, call tool.Call, answer json.RawMessage) (tool.Result, error) {
	task, started := startedTask(answer)
	switch {
	case !started:
		return tool.Result{Raw: answer}, nil
	case task.ID == "":
		return tool.Result{}, fault.New(fault.Upstream, "%s: the server started a task without an id", call.Ref)
	case call.Task == nil || c.opts.Tasks == nil:
		return c.awaitTask(ctx, call, task)
	}
	id, err := c.opts.Tasks.KeepTask(ctx, StartedTask{Ref: call.Ref, Caller: call.Caller, Task: task})
	if err != nil {
		c.abandonTask(task.ID)
		return tool.Result{}, err
	}
	receipt, err := tool.Output("continues as task "+id, nil)
	receipt.Task = id
	return receipt, err
}

// startedTask reads the task that a call was answered with; ok is false if it was
// answered with its result.
func startedTask(answer json.RawMessage) (task tool.Task, ok bool) {
	if kind, _ := rawjson.GetText(answer, "resultType"); kind == wire.ResultTask {
		return readTask(answer), true
	}
	legacy, found := rawjson.Get(answer, "task")
	if _, has := rawjson.Get(answer, "content"); !found || has || !rawjson.IsObject(legacy) {
		return tool.Task{}, false
	}
	return readTask(legacy), true
}

// readTask reads a task in the form of either era.
func readTask(raw json.RawMessage) tool.Task {
	task := tool.Task{State: tool.TaskWorking}
	task.ID, _ = rawjson.GetText(raw, "taskId")
	task.Message, _ = rawjson.GetText(raw, "statusMessage")
	task.TTL = milliseconds(raw, "ttl", "ttlMs")
	task.Poll = milliseconds(raw, "pollInterval", "pollIntervalMs")
	status, _ := rawjson.GetText(raw, "status")
	if state := tool.TaskState(status); state.Final() || state == tool.TaskInputRequired {
		task.State = state
	}
	return task
}

// milliseconds is the first of two members that is a number.
func milliseconds(object json.RawMessage, keys ...string) time.Duration {
	for _, key := range keys {
		raw, _ := rawjson.Get(object, key)
		if n, ok := rawjson.Number(raw); ok && n > 0 && n < float64(maxTaskTTL.Milliseconds()) {
			return time.Duration(n * float64(time.Millisecond))
		}
	}
	return 0
}

// maxTaskTTL is the longest time for which a server's own limits of a task are believed.
const maxTaskTTL = 10 * 365 * 24 * time.Hour

// awaitTask waits for the end of a task for a caller who wants its result. A caller who
// gives up cancels it.
func (c *connection) awaitTask(ctx context.Context, call tool.Call, task tool.Task) (tool.Result, error) {
	_, limit := c.timeouts(wire.MethodToolsCall)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errMaxTime)
	defer cancel()
	reports := 0.0
	end, err := c.followTask(ctx, task.ID, call.Caller, func(now tool.Task) {
		if call.Caller != nil && call.Caller.Progress != nil && now.Message != "" {
			reports++
			call.Caller.Progress(tool.Progress{Progress: reports, Message: now.Message})
		}
	})
	switch {
	case err != nil:
		if ctx.Err() != nil {
			c.abandonTask(task.ID)
			err = c.callError(ctx, context.Cause(ctx), call.Ref.Name)
		}
		return tool.Result{}, err
	case end.State == tool.TaskCancelled:
		return tool.Result{}, fault.New(fault.Cancelled, "%s: the server has cancelled the task", call.Ref)
	}
	return end.Result, end.Err
}

// abandonTask cancels a task whose result nobody will read.
func (c *connection) abandonTask(id string) {
	c.life.run(func(ctx context.Context) {
		if err := c.cancelTask(ctx, id); err != nil {
			c.log.DebugContext(ctx, "task not cancelled", "task", id, "error", err)
		}
	})
}

func (c *connection) cancelTask(ctx context.Context, id string) error {
	_, err := c.request(ctx, taskRequest(wire.MethodTasksCancel, id, nil), true)
	return err
}

// taskRequest is a request about a task.
func taskRequest(method, id string, caller *tool.Caller) *request {
	return &request{method: method, params: rawjson.SetText(nil, "taskId", id), about: id, caller: caller, task: true}
}

// CancelTask cancels a task of a server.
func (m *Manager) CancelTask(ctx context.Context, namespace, id string) error {
	return m.with(ctx, namespace, func(c *connection) error { return c.cancelTask(ctx, id) })
}

// FollowTask waits until a task of a server has ended and returns it. It calls changed
// with each change before that, and asks the caller what the server asks. A task that the
// server does not know is fault.NotFound.
func (m *Manager) FollowTask(ctx context.Context, namespace, id string, caller *tool.Caller, changed func(tool.Task)) (end tool.Task, err error) {
	err = m.with(ctx, namespace, func(c *connection) (err error) {
		end, err = c.followTask(ctx, id, caller, changed)
		return err
	})
	return end, err
}
