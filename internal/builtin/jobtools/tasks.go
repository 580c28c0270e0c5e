package jobtools

import (
	"context"
	"encoding/json"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/tools/toolset"
)

// Tasks presents jobs, and calls that wait for an approval, as MCP tasks. A task has the
// id of its job or approval, and asks for the approval that it waits for.
type Tasks struct {
	Queue     *job.Queue
	Approvals *approval.Store
}

// Task returns the current state of a job or call.
func (t Tasks) Task(ctx context.Context, id string) (tool.Task, error) {
	if isApproval(id) {
		return t.callTask(ctx, id)
	}
	j, err := t.Queue.Status(ctx, id)
	if err != nil {
		return tool.Task{}, err
	}
	return t.view(ctx, &j)
}

// How long the end of a job is waited for before its state is looked at again.
const (
	endWait   = time.Minute
	inputWait = time.Second // to notice that it waits for an approval
)

// WaitTask waits until a job has ended or, with orInput, waits for an approval.
func (t Tasks) WaitTask(ctx context.Context, id string, orInput bool) (tool.Task, error) {
	if isApproval(id) {
		return t.awaitCall(ctx, id, orInput)
	}
	wait := endWait
	if orInput {
		wait = inputWait
	}
	for {
		if task, err := t.Task(ctx, id); err != nil || task.State.Final() || orInput && task.State == tool.TaskInputRequired {
			return task, err
		}
		if _, _, err := t.Queue.Poll(ctx, []string{id}, wait, true); err != nil {
			return tool.Task{}, err
		}
	}
}

// ListTasks lists the jobs, the newest first.
func (t Tasks) ListTasks(ctx context.Context, cursor string) ([]tool.Task, string, error) {
	page, err := t.Queue.List(ctx, job.Filter{}, 0, cursor)
	if err != nil {
		return nil, "", err
	}
	var all []tool.Task
	for i := range page.Jobs {
		task, err := t.view(ctx, &page.Jobs[i])
		if err != nil {
			return nil, "", err
		}
		all = append(all, task)
	}
	return all, page.Next, nil
}

// CancelTask cancels a job, or a call that waits.
func (t Tasks) CancelTask(ctx context.Context, id string) error {
	if isApproval(id) {
		return t.cancelCall(ctx, id)
	}
	_, err := t.Queue.Cancel(ctx, id)
	return err
}

// AnswerTask decides the approval that a job or call waits for. The key of the answer is
// the approval's id.
func (t Tasks) AnswerTask(ctx context.Context, id string, answers map[string]json.RawMessage) error {
	if isApproval(id) {
		return t.answerCall(ctx, id, answers)
	}
	j, err := t.Queue.Status(ctx, id)
	if err != nil || j.State != job.Waiting {
		return err
	}
	waits, ok, err := t.Approvals.PendingOf(ctx, jobRun(id))
	if err != nil || !ok {
		return err
	}
	return t.answer(ctx, &waits, answers)
}

// answer decides an approval, unless the caller has not, or somebody has decided meanwhile.
func (t Tasks) answer(ctx context.Context, a *approval.Approval, answers map[string]json.RawMessage) error {
	answer, decided := script.ReadApproval(answers[a.ID], "")
	if !decided {
		return nil
	}
	answer.Later = true
	if err := t.Approvals.Answer(ctx, a.ID, answer); fault.CodeOf(err) != fault.Conflict {
		return err
	}
	return nil
}

// jobRun is the name of a job's run in approvals.
func jobRun(id string) string { return "job:" + id }

// question is the approval that a job waits for, as a question of its task; nil if it was
// decided, or somebody else must.
func (t Tasks) question(ctx context.Context, j *job.Job) (map[string]json.RawMessage, error) {
	a, ok, err := t.Approvals.PendingOf(ctx, jobRun(j.ID))
	if err != nil || !ok {
		return nil, err
	}
	return t.questionOf(ctx, &a)
}

func (t Tasks) view(ctx context.Context, j *job.Job) (task tool.Task, err error) {
	task = tool.Task{ID: j.ID, State: tool.TaskWorking, Message: j.Message, Created: j.Created, Updated: j.Created}
	for _, later := range []time.Time{j.Started, j.Finished} {
		if later.After(task.Updated) {
			task.Updated = later
		}
	}
	if !j.State.Final() {
		switch {
		case j.State == job.Waiting:
			task.Message = "waiting for an approval"
			if task.Questions, err = t.question(ctx, j); len(task.Questions) > 0 {
				task.State = tool.TaskInputRequired
			}
		case j.State == job.Pending && task.Message == "":
			task.Message = "waiting for its turn"
		}
		return task, err
	}
	task.TTL = j.Finished.Sub(j.Created) + t.Queue.Retention(j.State)
	switch j.State {
	case job.Cancelled:
		task.State = tool.TaskCancelled
	case job.Failed:
		task.State, task.Message = tool.TaskCompleted, j.Error.Message
		task.Result = tool.Failure(fault.New(j.Error.Code, "%s", j.Error.Message).WithHint("%s", j.Error.Hint))
	default:
		task.State = tool.TaskCompleted
		task.Result, err = executed(j)
	}
	return task, err
}

// executed is the result of lua_execute for a finished job.
func executed(j *job.Job) (tool.Result, error) {
	result := j.Result
	if len(result) == 0 {
		result = toolset.JSON("null")
	}
	return tool.Output(string(result), Execution{JobID: j.ID, Status: string(j.State), Result: result})
}
