package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
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

// awaitTask answers tasks/result: it waits for the end of a task, and asks the client on
// the same stream what the task asks meanwhile.
func (req *request) awaitTask(ctx context.Context, id string) (json.RawMessage, error) {
	tasks := req.ep.tasks.of(id)
	for {
		work, err := tasks.WaitTask(ctx, id, true)
		switch {
		case err != nil:
			return nil, taskFailure(err)
		case work.State.Final():
			return taskResult(work)
		}
		if err := req.askForTask(ctx, tasks, work); err != nil {
			return nil, taskFailure(err)
		}
	}
}

// errTaskEnded is why a question of a task needs no answer any more.
var errTaskEnded = fault.New(fault.Cancelled, "the task has ended")

// askForTask asks the client the questions of a task. If the client cannot be asked, it
// waits for the end of the task: others may answer.
func (req *request) askForTask(ctx context.Context, tasks Tasks, work tool.Task) error {
	questions := taskQuestions(work)
	if checkDeclared(req.caps, questions) != nil {
		_, err := tasks.WaitTask(ctx, work.ID, false)
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if _, err := tasks.WaitTask(ctx, work.ID, false); err == nil {
			cancel(errTaskEnded)
		}
	}()
	replies, err := req.ask(ctx, questions)
	ended := errors.Is(context.Cause(ctx), errTaskEnded)
	cancel(nil)
	<-watched
	if err != nil && ended {
		return nil
	}
	if err != nil {
		return err
	}
	answers := map[string]json.RawMessage{}
	for i, q := range questions {
		answers[q.Key] = replies[i]
	}
	return tasks.AnswerTask(context.WithoutCancel(ctx), work.ID, answers)
}

// taskQuestions are the questions of a task in the form of revision 2025-11-25, which
// names the task in each.
func taskQuestions(work tool.Task) []tool.Question {
	related := rawjson.Set(nil, wire.MetaRelatedTask, rawjson.SetText(nil, "taskId", work.ID))
	var questions []tool.Question
	for _, key := range slices.Sorted(maps.Keys(work.Questions)) {
		q := tool.Question{Key: key}
		q.Method, _ = rawjson.GetText(work.Questions[key], "method")
		params, _ := rawjson.Get(work.Questions[key], "params")
		q.Params = wire.SetMeta(params, related)
		questions = append(questions, q)
	}
	return questions
}

// answerable is a task as a client with these capabilities sees it. For one that cannot be
// asked, a task that waits for input works: others may answer.
func answerable(work tool.Task, caps json.RawMessage) tool.Task {
	if work.State == tool.TaskInputRequired && checkDeclared(caps, taskQuestions(work)) != nil {
		work.State, work.Questions = tool.TaskWorking, nil
	}
	return work
}

// maxFollowedTasks is how many tasks a session is notified of.
const maxFollowedTasks = 1000

// followTask has a session of the sessions era notified of changes of a task.
func (s *session) followTask(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tasks == nil {
		s.tasks = map[string]bool{}
	}
	if len(s.tasks) < maxFollowedTasks {
		s.tasks[id] = true
	}
}

// notifyTask sends the session the state of a task that it follows.
func (s *session) notifyTask(work tool.Task) {
	s.mu.Lock()
	follows := s.tasks[work.ID]
	if work.State.Final() {
		delete(s.tasks, work.ID)
	}
	s.mu.Unlock()
	if !follows {
		return
	}
	if raw, err := json.Marshal(viewLegacyTask(work)); err == nil { // it consists of texts and numbers
		note := wire.Notification(wire.NoteTaskStatus, raw)
		s.main.offer(note.Append(nil))
	}
}

// relayedTaskChanged notifies the clients that follow a task of an upstream.
func (h *Hub) relayedTaskChanged(work tool.Task) {
	for _, e := range h.endpoints() {
		if e.name != "" && e.name != work.Space {
			continue
		}
		e.taskChanged(work.ID)
		for _, s := range e.sessions.list() {
			s.notifyTask(work)
		}
	}
}

// taskSource finds the tasks of an endpoint.
type taskSource struct {
	own     Tasks        // nil: none
	relayed RelayedTasks // nil: none
	space   string       // only tasks of this upstream; "" for all
}

func newTaskSource(o Options, space string) taskSource {
	return taskSource{own: o.Tasks, relayed: o.RelayedTasks, space: space}
}

// any tells whether the endpoint can have tasks.
func (s taskSource) any() bool { return s.own != nil || s.relayed != nil }

// of is who has the task with an id.
func (s taskSource) of(id string) Tasks {
	if s.own == nil || s.relayed != nil && s.relayed.Relays(id) {
		return s.relayed
	}
	return s.own
}

func (s taskSource) get(ctx context.Context, id string) (tool.Task, error) {
	work, err := s.of(id).Task(ctx, id)
	if err == nil && s.space != "" && work.Space != s.space {
		err = fault.New(fault.NotFound, "no task %q", id)
	}
	return work, err
}

// relayedCursor begins the cursors of upstreams' tasks.
const relayedCursor = "relayed:"

// list returns a page of all tasks: those of upstreams, then our own. At the endpoint of an
// upstream ours, which are jobs and calls that wait for an approval, are not listed.
func (s taskSource) list(ctx context.Context, cursor string) (all []tool.Task, next string, err error) {
	rest, relayed := strings.CutPrefix(cursor, relayedCursor)
	if s.relayed != nil && (relayed || cursor == "") {
		if all, next, err = s.relayed.ListTasks(ctx, rest); err != nil {
			return nil, "", err
		}
		if s.space != "" {
			all = slices.DeleteFunc(all, func(work tool.Task) bool { return work.Space != s.space })
		}
		if next != "" || s.own == nil || s.space != "" {
			return all, strings.TrimSuffix(relayedCursor+next, relayedCursor), nil
		}
		cursor = ""
	}
	if s.own == nil || s.space != "" {
		return nil, "", wire.Errorf(wire.CodeInvalidParams, "invalid cursor")
	}
	own, next, err := s.own.ListTasks(ctx, cursor)
	return append(all, own...), next, err
}

// listPage answers tasks/list.
func (s taskSource) listPage(ctx context.Context, req *request) (json.RawMessage, error) {
	cursor, _ := rawjson.GetText(req.params, "cursor")
	all, next, err := s.list(ctx, cursor)
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

// tasksCapability is how a server declares the extension.
var tasksCapability = json.RawMessage(`{}`)

// offersTasks tells whether capabilities of either era say that calls of tools can be
// tasks.
func offersTasks(capabilities json.RawMessage) bool {
	extensions, _ := rawjson.Get(capabilities, "extensions")
	if _, found := rawjson.Get(extensions, wire.ExtensionTasks); found {
		return true
	}
	tasks, _ := rawjson.Get(capabilities, "tasks")
	requests, _ := rawjson.Get(tasks, "requests")
	tools, _ := rawjson.Get(requests, "tools")
	_, found := rawjson.Get(tools, "call")
	return found
}

// withOptionalTask is a tool's definition in which tasks are not required: a call that is
// made without one waits for the result.
func withOptionalTask(definition json.RawMessage) json.RawMessage {
	execution, _ := rawjson.Get(definition, "execution")
	if support, _ := rawjson.GetText(execution, "taskSupport"); support != "required" {
		return definition
	}
	return rawjson.Set(definition, "execution", rawjson.SetText(execution, "taskSupport", "optional"))
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
