package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
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
func (l *listing) findTaskSupport(capabilities json.RawMessage) {
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
func (s *session) taskParams(r *outcall) json.RawMessage {
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
func taskRequest(method, id string, caller *tool.Caller) *outcall {
	return &outcall{method: method, params: rawjson.SetText(nil, "taskId", id), about: id, caller: caller, task: true}
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

// taskFollower follows one task of a server to its end.
type taskFollower struct {
	connection *connection
	id         string
	caller     *tool.Caller // nil: it cannot be asked
	changed    func(tool.Task)
	noted      chan struct{} // holds a token when the server has said that the task changed

	state   tool.TaskState // reported last
	message string
	asked   map[string]bool // questions of a modern server that were passed on
}

// Limits of the time between two looks at a task, and the time if the server recommends
// none.
const (
	minTaskPoll     = 50 * time.Millisecond
	maxTaskPoll     = 10 * time.Second
	defaultTaskPoll = time.Second
)

// followTask is FollowTask for one connection.
func (c *connection) followTask(ctx context.Context, id string, caller *tool.Caller, changed func(tool.Task)) (tool.Task, error) {
	s, err := c.waitForSession(ctx, nil, new(time.Time))
	if err != nil {
		return tool.Task{}, err
	}
	f := &taskFollower{
		connection: c, id: id, caller: caller, changed: changed,
		noted: make(chan struct{}, 1), asked: map[string]bool{},
	}
	defer c.followed.follow(id, f.noted)()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.era == wire.Modern {
		return f.followModern(ctx)
	}
	return f.followLegacy(ctx)
}

// followed are the tasks that somebody follows: by task, what receives a token when the server
// says that it changed.
type followed struct {
	mu   sync.Mutex
	list map[string]chan struct{}
}

// follow has noted receive a token when the server says that a task has changed.
func (l *followed) follow(id string, noted chan struct{}) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.list == nil {
		l.list = map[string]chan struct{}{}
	}
	l.list[id] = noted
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.list[id] == noted {
			delete(l.list, id)
		}
	}
}

// note handles a notification about a task. Watchers do not get it: they know the tasks of
// their own callers only, under other ids.
func (l *followed) note(params json.RawMessage) {
	id, _ := rawjson.GetText(params, "taskId")
	l.mu.Lock()
	noted := l.list[id]
	l.mu.Unlock()
	if noted != nil {
		signal(noted)
	}
}

// get asks for the state of the task.
func (f *taskFollower) get(ctx context.Context) (task tool.Task, raw json.RawMessage, err error) {
	raw, err = f.connection.request(ctx, taskRequest(wire.MethodTasksGet, f.id, f.caller), true)
	var refused *wire.Error
	switch {
	case errors.As(err, &refused) && (refused.Code == wire.CodeInvalidParams || refused.Code == wire.CodeMethodNotFound):
		return task, nil, fault.Wrap(fault.NotFound, err, "%s no longer has this task", f.connection.name).
			WithHint("it was restarted or has deleted the task: make the call again")
	case err != nil:
		return task, nil, err
	}
	task = readTask(raw)
	return task, raw, nil
}

// report passes the task on if it has changed.
func (f *taskFollower) report(task tool.Task) {
	if task.State.Final() || task.State == f.state && task.Message == f.message {
		return
	}
	f.state, f.message = task.State, task.Message
	f.changed(task)
}

// pause is how long to wait until the next look.
func (f *taskFollower) pause(task tool.Task) time.Duration {
	if task.Poll == 0 {
		return defaultTaskPoll
	}
	return min(max(task.Poll, minTaskPoll), maxTaskPoll)
}

// taskResult is the answer to a request for the result of a task.
type taskResult struct {
	raw json.RawMessage
	err error
}

// requestResult asks for the result of a task of the sessions era. The server answers
// when the task has ended, and sends its questions until then as part of this request.
func (f *taskFollower) requestResult(ctx context.Context) <-chan taskResult {
	answered := make(chan taskResult, 1)
	go func() {
		raw, err := f.connection.request(ctx, taskRequest(wire.MethodTasksResult, f.id, f.caller), true)
		answered <- taskResult{raw, err}
	}()
	return answered
}

// followLegacy follows a task of the sessions era.
func (f *taskFollower) followLegacy(ctx context.Context) (tool.Task, error) {
	ctx, cancel := context.WithCancel(ctx)
	answered := f.requestResult(ctx)
	defer func() {
		cancel()
		if answered != nil {
			<-answered
		}
	}()
	for {
		task, _, err := f.get(ctx)
		switch {
		case err != nil:
			return task, err
		case task.State == tool.TaskCancelled:
			return task, nil
		case task.State.Final():
			if answered == nil { // the server does not answer before the end
				answered = f.requestResult(ctx)
			}
			result := <-answered
			answered = nil
			return f.endLegacy(ctx, task, result)
		}
		f.report(task)
		timer := time.NewTimer(f.pause(task))
		select {
		case result := <-answered:
			answered = nil
			if result.err == nil {
				task.Message = "" // it is about work that is done
				return f.endLegacy(ctx, task, result)
			}
		case <-timer.C:
		case <-f.noted:
		case <-ctx.Done():
			return task, context.Cause(ctx)
		}
		timer.Stop()
	}
}

// endLegacy is a task with its result, which may be an error of the server.
func (f *taskFollower) endLegacy(ctx context.Context, task tool.Task, result taskResult) (tool.Task, error) {
	var failed *wire.Error
	switch {
	case ctx.Err() != nil:
		return task, context.Cause(ctx)
	case errors.As(result.err, &failed):
		task.State, task.Err = tool.TaskFailed, result.err
	case result.err != nil:
		return task, result.err
	default:
		task.State, task.Result = tool.TaskCompleted, tool.Result{Raw: result.raw}
	}
	return task, nil
}

// followModern follows a task of the extension: its state has everything.
func (f *taskFollower) followModern(ctx context.Context) (tool.Task, error) {
	questions := make(chan error)
	asking := 0
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		for ; asking > 0; asking-- {
			<-questions
		}
	}()
	for {
		task, raw, err := f.get(ctx)
		if err != nil || task.State.Final() {
			return endModern(task, raw), err
		}
		if ask := f.unasked(task, raw); len(ask) > 0 {
			asking++
			go func() { questions <- f.answer(ctx, ask) }()
		}
		f.report(task)
		timer := time.NewTimer(f.pause(task))
		select {
		case err := <-questions:
			asking--
			if err != nil && ctx.Err() == nil {
				return task, err
			}
		case <-timer.C:
		case <-f.noted:
		case <-ctx.Done():
			return task, context.Cause(ctx)
		}
		timer.Stop()
	}
}

// endModern adds the result or the error to a task that has ended.
func endModern(task tool.Task, raw json.RawMessage) tool.Task {
	switch task.State {
	case tool.TaskCompleted:
		result, _ := rawjson.Get(raw, "result")
		if !rawjson.IsObject(result) {
			task.State, task.Err = tool.TaskFailed, fault.New(fault.Upstream, "the server's task has no result")
			break
		}
		task.Result.Raw = wire.ToLegacy(result)
	case tool.TaskFailed:
		failure, _ := rawjson.Get(raw, "error")
		task.Err = fault.Wrap(fault.Upstream, wire.ParseError(failure), "the server's task has failed")
	}
	return task
}

// unasked are the questions of a modern server that were not passed on yet.
func (f *taskFollower) unasked(task tool.Task, raw json.RawMessage) (questions []tool.Question) {
	if task.State != tool.TaskInputRequired {
		return nil
	}
	all, _ := inputRequests(raw) // too many: the task waits in vain
	for _, q := range all {
		if !f.asked[q.Key] {
			f.asked[q.Key] = true
			questions = append(questions, q)
		}
	}
	return questions
}

// answer asks the caller and sends the server what it answers.
func (f *taskFollower) answer(ctx context.Context, questions []tool.Question) error {
	responses := json.RawMessage(`{}`)
	open := questions[:0]
	for _, q := range questions {
		if canAnswer(f.caller, q.Method) {
			open = append(open, q)
		} else if refusal, err := declineQuestion(q.Method); err == nil {
			responses = rawjson.Set(responses, q.Key, refusal)
		}
	}
	if len(open) > 0 {
		replies, err := f.caller.Ask(ctx, open)
		if err == nil && len(replies) != len(open) {
			err = fault.New(fault.Internal, "%d answers to %d questions", len(replies), len(open))
		}
		if err != nil {
			return err
		}
		for i, q := range open {
			responses = rawjson.Set(responses, q.Key, replies[i])
		}
	}
	r := taskRequest(wire.MethodTasksUpdate, f.id, f.caller)
	r.params = rawjson.Set(r.params, "inputResponses", responses)
	_, err := f.connection.request(ctx, r, true)
	return err
}
