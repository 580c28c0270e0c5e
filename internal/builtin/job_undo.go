package builtin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script"
)

// Undone is the result of job_undo.
type Undone struct {
	JobID      string     `json:"job_id" jsonschema:"the job that is undone"`
	Status     string     `json:"status" jsonschema:"nothing: no change can be undone; denied: the person refused; otherwise the status of the job that undoes it" enum:"nothing,denied,pending,running,waiting,complete,failed,cancelled"`
	UndoJobID  string     `json:"undo_job_id,omitempty" jsonschema:"the job that makes the calls"`
	ApprovalID string     `json:"approval_id,omitempty" jsonschema:"of the approval that it waits for"`
	Steps      []UndoStep `json:"steps" jsonschema:"the changes, in the order in which they are undone"`
	Error      *JobError  `json:"error,omitempty" jsonschema:"why the job that undoes it failed"`
}

// UndoStep is one change of a job and the call that undoes it.
type UndoStep struct {
	Step    int64  `json:"step" jsonschema:"number of the change, as in job_journal"`
	Change  string `json:"change" jsonschema:"as written in a script, shortened"`
	Tool    string `json:"tool,omitempty" jsonschema:"what undoes it"`
	Problem string `json:"problem,omitempty" jsonschema:"why it cannot be undone"`

	Arguments Object `json:"arguments,omitempty" jsonschema:"of that call"`
}

// Text returns the plan and what became of it.
func (u Undone) Text() string {
	lines := []string{map[string]string{
		"nothing": "Nothing can be undone.", "denied": "Not approved: nothing was undone.", "complete": "Undone.",
	}[u.Status]}
	if lines[0] == "" {
		lines[0] = fmt.Sprintf("Job %s undoes it: %s.", u.UndoJobID, u.Status)
	}
	if u.ApprovalID != "" {
		lines[0] = fmt.Sprintf("Waiting for approval %s. Then job %s undoes it.", u.ApprovalID, u.UndoJobID)
	}
	for _, s := range u.Steps {
		if s.Problem != "" {
			lines = append(lines, fmt.Sprintf("%4d  %s  cannot be undone: %s", s.Step, s.Change, s.Problem))
		} else {
			lines = append(lines, fmt.Sprintf("%4d  %s  by %s %s", s.Step, s.Change, s.Tool, s.Arguments))
		}
	}
	if u.Error != nil {
		lines = append(lines, u.Error.text())
	}
	return strings.Join(lines, "\n")
}

// undoWait is how long job_undo waits for the end of the job that makes the calls.
const undoWait = time.Minute

func (t jobTools) undo(ctx context.Context, call tool.Call, in jobIn) (tool.Result, error) {
	u, err := t.queue.Undo(ctx, in.JobID)
	if err != nil {
		return tool.Result{}, err
	}
	out := Undone{JobID: in.JobID, Status: "nothing", UndoJobID: u.ID, Steps: undoSteps(u.Steps)}
	if u.ID == "" {
		return tool.Output(out.Text(), out)
	}
	var answer host.Answer
	answered, err := script.Settle(ctx, call.Caller, u.Asked, &u.Paused, func(said host.Answer) error {
		answer = said
		return t.queue.AnswerUndo(ctx, u, said)
	})
	if err != nil {
		return tool.Result{}, err
	}
	if answered && !answer.Allow {
		out.Status, out.UndoJobID = "denied", ""
		return tool.Output(out.Text(), out)
	}
	if _, err := t.queue.StartUndo(ctx, u); err != nil {
		return tool.Result{}, err
	}
	if !answered {
		out.Status, out.ApprovalID = string(job.Waiting), u.Asked.ID
		return tool.Output(out.Text(), out)
	}
	return t.undone(ctx, out)
}

// undone waits for the job that makes the calls.
func (t jobTools) undone(ctx context.Context, out Undone) (tool.Result, error) {
	if _, _, err := t.queue.Poll(ctx, []string{out.UndoJobID}, undoWait, true); err != nil {
		return tool.Result{}, err
	}
	j, err := t.queue.Status(ctx, out.UndoJobID)
	if err != nil {
		return tool.Result{}, err
	}
	out.Status, out.Error = string(j.State), jobError(j.Error)
	return tool.Output(out.Text(), out)
}

func undoSteps(steps []job.UndoStep) []UndoStep {
	views := make([]UndoStep, len(steps))
	for i, s := range steps {
		views[i] = UndoStep{Step: s.Step, Change: s.Call, Problem: s.Problem}
		if s.Problem == "" {
			views[i].Tool, views[i].Arguments = s.Tool.String(), Object(s.Arguments)
		}
	}
	return views
}
