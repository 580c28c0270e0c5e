package builtin

import (
	"context"
	"encoding/json"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/jobs/job"
)

// JobTasks presents jobs as MCP tasks. A task has the id of its job.
type JobTasks struct{ Queue JobQueue }

// Task returns the current state of a job.
func (t JobTasks) Task(ctx context.Context, id string) (tool.Task, error) {
	j, err := t.Queue.Status(ctx, id)
	if err != nil {
		return tool.Task{}, err
	}
	return t.view(&j)
}

// WaitTask waits until a job has ended.
func (t JobTasks) WaitTask(ctx context.Context, id string) (tool.Task, error) {
	for {
		done, _, err := t.Queue.Poll(ctx, []string{id}, time.Minute, true)
		switch {
		case err != nil:
			return tool.Task{}, err
		case len(done) == 1:
			return t.view(&done[0])
		}
	}
}

// ListTasks lists the jobs, the newest first.
func (t JobTasks) ListTasks(ctx context.Context, cursor string) ([]tool.Task, string, error) {
	page, err := t.Queue.List(ctx, job.Filter{}, 0, cursor)
	if err != nil {
		return nil, "", err
	}
	var all []tool.Task
	for i := range page.Jobs {
		task, err := t.view(&page.Jobs[i])
		if err != nil {
			return nil, "", err
		}
		all = append(all, task)
	}
	return all, page.Next, nil
}

// CancelTask cancels a job.
func (t JobTasks) CancelTask(ctx context.Context, id string) error {
	_, err := t.Queue.Cancel(ctx, id)
	return err
}

// AnswerTask is not supported: jobs ask no questions.
func (t JobTasks) AnswerTask(ctx context.Context, id string, _ map[string]json.RawMessage) error {
	_, err := t.Queue.Status(ctx, id)
	return err
}

func (t JobTasks) view(j *job.Job) (tool.Task, error) {
	task := tool.Task{ID: j.ID, State: tool.TaskWorking, Message: j.Message, Created: j.Created, Updated: j.Created}
	for _, later := range []time.Time{j.Started, j.Finished} {
		if later.After(task.Updated) {
			task.Updated = later
		}
	}
	if !j.State.Final() {
		switch {
		case j.State == job.Waiting:
			task.Message = "waiting for an approval"
		case j.State == job.Pending && task.Message == "":
			task.Message = "waiting for its turn"
		}
		return task, nil
	}
	task.TTL = j.Finished.Sub(j.Created) + t.Queue.Retention(j.State)
	var err error
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
		result = JSON("null")
	}
	return tool.Output(string(result), struct {
		Execution
		Result JSON `json:"result"`
	}{Execution{JobID: j.ID, Status: string(j.State)}, result})
}
