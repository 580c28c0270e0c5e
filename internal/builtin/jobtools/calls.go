package jobtools

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/builtin/approvaltools"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/govern/approval"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script"
)

// A call that waits for an approval is a task with the id of the approval, until the call was
// made and its result fetched. It belongs to whoever made the call.

func isApproval(id string) bool { return strings.HasPrefix(id, approval.IDPrefix) }

// callTask is the call that made a request for approval.
func (t Tasks) callTask(ctx context.Context, id string) (tool.Task, error) {
	a, err := t.Approvals.Newest(ctx, id)
	if err != nil {
		return tool.Task{}, err
	}
	task := tool.Task{ID: id, Space: a.Space, State: tool.TaskWorking, Message: "waiting for an approval", Created: a.Created, Updated: a.Created}
	if a.Decided.After(task.Updated) {
		task.Updated, task.Message = a.Decided, ""
	}
	switch {
	case a.State == approval.Withdrawn:
		task.State = tool.TaskCancelled
	case len(a.Outcome) > 0:
		task.State, task.TTL = tool.TaskCompleted, t.Approvals.StoredFor(&a)
		task.Result, _, err = approvaltools.OutcomeResult(&a)
	case a.State == approval.Pending:
		if task.Questions, err = t.questionOf(ctx, &a); len(task.Questions) > 0 {
			task.State = tool.TaskInputRequired
		}
	}
	return task, err
}

// awaitCall waits until the call was made or, with orInput, asks for its approval.
func (t Tasks) awaitCall(ctx context.Context, id string, orInput bool) (tool.Task, error) {
	for {
		task, err := t.callTask(ctx, id)
		if err != nil || task.State.Final() || orInput && task.State == tool.TaskInputRequired {
			return task, err
		}
		a, err := t.Approvals.Newest(ctx, id)
		if err != nil {
			return task, err
		}
		if _, err := t.Approvals.AwaitOutcome(ctx, a.ID); err != nil {
			return task, err
		}
	}
}

// answerCall decides the approval that a call waits for. The call is made soon after it.
func (t Tasks) answerCall(ctx context.Context, id string, answers map[string]json.RawMessage) error {
	a, err := t.Approvals.Newest(ctx, id)
	if err != nil || a.State != approval.Pending {
		return err
	}
	return t.answer(ctx, &a, answers)
}

// cancelCall withdraws the request of a call that waits.
func (t Tasks) cancelCall(ctx context.Context, id string) error {
	a, err := t.Approvals.Newest(ctx, id)
	if err != nil || a.State != approval.Pending {
		return err
	}
	return t.Approvals.Withdraw(ctx, a.Key)
}

// questionOf is an approval as a question of its task; none if somebody else must decide.
func (t Tasks) questionOf(ctx context.Context, a *approval.Approval) (map[string]json.RawMessage, error) {
	if t.Approvals.Refusal(ctx, a) != nil {
		return nil, nil //nolint:nilerr // somebody else is asked
	}
	params, err := script.ApprovalQuestion(&host.Paused{RunInfo: a.RunInfo, Plan: a.Plan, Complete: a.Complete, Incomplete: a.Incomplete})
	if err != nil {
		return nil, err
	}
	return map[string]json.RawMessage{a.ID: rawjson.Set(rawjson.SetText(nil, "method", tool.MethodElicit), "params", params)}, nil
}
