package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/store/db"
)

// undoTag is the tag of jobs that undo other jobs. All their changes need approval.
const undoTag = "undo"

// undoTagOf is a second tag of the jobs that undo the job id.
func undoTagOf(id string) string { return undoTag + ":" + id }

// undoSource is the script of a job that undoes another one: it makes the calls in order.
const undoSource = `function main(undo)
  for _, call in ipairs(undo.calls) do
    if call.file then
      fs.restore(call.file, call.arguments.job_id)
    else
      mcp.call(call.server, call.tool, call.arguments)
    end
    print("undone: step " .. call.step)
  end
  return { undone = #undo.calls }
end
`

// Undo is how a job is undone: by a job that makes the opposite calls, once they are
// approved.
type Undo struct {
	Steps  []UndoStep   // all changes of the job that are not undone yet, the last one first
	ID     string       // of the job that undoes it; "" if no step can be undone
	Paused host.Paused  // what has to be approved
	Asked  host.Pending // the request for approval

	spec    Spec
	earlier int // jobs that have undone parts of it before
}

// Undo asks for the approval to undo a job that has ended. Nothing is undone before
// StartUndo.
func (q *Queue) Undo(ctx context.Context, id string) (Undo, error) {
	if err := q.writable(); err != nil {
		return Undo{}, err
	}
	if q.options.Approvals == nil || q.options.Tools == nil {
		return Undo{}, fault.New(fault.Unavailable, "jobs cannot be undone here: no one can approve it")
	}
	if err := q.check(ctx, principal.Job, principal.Edit, id); err != nil {
		return Undo{}, err
	}
	j, err := q.Status(ctx, id)
	if err != nil {
		return Undo{}, err
	}
	if !j.State.Final() {
		return Undo{}, fault.New(fault.Conflict, "job %s is %s: only ended jobs can be undone", id, j.State).
			WithHint("wait for it with job_poll, or stop it with job_cancel")
	}
	earlier, err := q.undosOf(ctx, id)
	if err != nil {
		return Undo{}, err
	}
	u := Undo{}
	if u.Steps, err = q.undoSteps(ctx, id, earlier); err != nil {
		return u, err
	}
	if u.spec, err = undoSpec(j, u.Steps); err != nil || u.spec.Source == "" {
		return u, err
	}
	u.ID, u.earlier = newID(), len(earlier)
	if u.Paused, err = q.rehearseUndo(ctx, u); err != nil {
		return u, err
	}
	u.Asked, err = q.options.Approvals.Ask(ctx, u.Paused)
	return u, err
}

// undoSpec returns the job that makes the calls of the steps that can be undone; the zero
// Spec if there are none.
func undoSpec(j Job, steps []UndoStep) (Spec, error) {
	calls := []undoCall{}
	for _, s := range steps {
		if s.Problem == "" {
			calls = append(calls, undoCall{s.Step, s.Tool.Space, s.Tool.Name, s.File, s.Arguments})
		}
	}
	if len(calls) == 0 {
		return Spec{}, nil
	}
	params, err := json.Marshal(map[string]any{"calls": calls})
	name := "undo"
	if j.Name != "" {
		name = "undo " + j.Name
	}
	return Spec{Name: name, Source: undoSource, Language: "lua", Params: params, Creator: j.Creator, Tags: []string{undoTag, undoTagOf(j.ID)}}, err
}

// undoCall is a call that undoes a step, in the params of the job.
type undoCall struct {
	Step      int64           `json:"step"`
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	File      string          `json:"file,omitempty"` // to restore instead
	Arguments json.RawMessage `json:"arguments"`
}

// rehearseUndo returns the plan of an undo: what would be refused is refused now.
func (q *Queue) rehearseUndo(ctx context.Context, u Undo) (host.Paused, error) {
	who := runInfoOf(Job{ID: u.ID, Spec: u.spec})
	rehearsal, err := q.rehearsal(ctx, who, nil)
	if err != nil {
		return host.Paused{}, err
	}
	if _, err := q.rehearse(ctx, u.ID, u.spec, rehearsal); err != nil {
		return host.Paused{}, fault.Wrap(fault.CodeOf(err), err, "the job cannot be undone").WithHint("%s", fault.HintOf(err))
	}
	first := u.Steps[slices.IndexFunc(u.Steps, func(s UndoStep) bool { return s.Problem == "" })]
	return host.Paused{
		RunInfo: who, Effect: first.effect(),
		Plan: rehearsal.Plan(), Certain: rehearsal.Certain(), Complete: true,
	}, nil
}

// rehearsal returns a handler that changes nothing and makes no read that needs approval.
func (q *Queue) rehearsal(ctx context.Context, who host.RunInfo, past []host.Step) (*host.Rehearsal, error) {
	if q.options.Approvals == nil {
		return host.NewRehearsal(q.options.Tools, nil, nil), nil
	}
	guard, err := q.options.Approvals.Approver(ctx, who, past)
	return host.NewRehearsal(q.options.Tools, guard, nil), err
}

// rehearse runs a script with a handler that changes nothing.
func (q *Queue) rehearse(ctx context.Context, id string, s Spec, handler host.Handler) (Outcome, error) {
	return q.runner.RunJob(ctx, Task{
		ID: id, Spec: s, Queue: q, Handler: handler, Offline: true, Progress: func(float64, string) {}, Watch: func(host.OutputLine) {},
	})
}

// StartUndo starts the job that undoes another one. It waits for the approval if there is
// none yet. If another undo has started since the plan was made, it is refused.
func (q *Queue) StartUndo(ctx context.Context, u Undo) (Job, error) {
	j, err := q.submit(ctx, u.ID, u.spec, func(tx *db.Tx) error {
		var started int
		if err := tx.QueryRow(ctx, "SELECT COUNT(*) FROM job_tags WHERE tag = $1", u.spec.Tags[1]).Scan(&started); err != nil {
			return err
		}
		if started != u.earlier {
			return errUndoneMeanwhile
		}
		return nil
	})
	if errors.Is(err, errUndoneMeanwhile) {
		return j, errors.Join(errUndoneMeanwhile, q.options.Approvals.Withdraw(ctx, u.Paused.Key))
	}
	return j, err
}

// errUndoneMeanwhile is the error of an undo that another one has overtaken.
var errUndoneMeanwhile = fault.New(fault.Conflict, "another job has begun to undo it").WithHint("call job_undo again to see what is left")

// AnswerUndo stores a decision about an undo.
func (q *Queue) AnswerUndo(ctx context.Context, u Undo, answer host.Answer) error {
	return q.options.Approvals.Answer(ctx, u.Asked.ID, answer)
}

// undosOf returns the jobs that have undone a job, or parts of it. While one is not over,
// the error says so.
func (q *Queue) undosOf(ctx context.Context, id string) ([]Job, error) {
	page, err := q.List(ctx, Filter{Tag: undoTagOf(id)}, maxUndos, "")
	if err != nil {
		return nil, err
	}
	for _, j := range page.Jobs {
		if !j.State.Final() {
			return nil, fault.New(fault.Conflict, "job %s undoes it already and is %s", j.ID, j.State).
				WithHint("approval_list shows what waits for a decision; job_poll waits for its end")
		}
	}
	return page.Jobs, nil
}

// maxUndos is the number of jobs that may try to undo one job.
const maxUndos = 100

// UndoStep is a change that a job made, and the call that undoes it.
type UndoStep struct {
	Step      int64           // number of the change in the job
	Call      string          // the change, as written in a script
	Tool      tool.Ref        // what undoes it
	File      string          // what is restored; "" if a tool undoes it
	Arguments json.RawMessage // of that call
	Problem   string          // why it cannot be undone; "" if it can

	job string // that made it
}

// effect is the effect that undoes it.
func (s UndoStep) effect() host.Effect {
	if s.File == "" {
		return host.CallOf(s.Tool, s.Arguments)
	}
	return host.Effect{Name: s.Tool.String(), Kind: host.Idempotent, Args: []host.Value{s.File, s.job}}
}

// undoSteps returns the changes of a job that earlier undos did not undo, the last one
// first.
func (q *Queue) undoSteps(ctx context.Context, id string, earlier []Job) ([]UndoStep, error) {
	steps, err := q.Journal(ctx, id)
	if err != nil {
		return nil, err
	}
	tried, err := q.triedUndos(ctx, earlier)
	if err != nil {
		return nil, err
	}
	files, err := q.fileUndos(ctx, id)
	if err != nil {
		return nil, err
	}
	undo := withoutJournal(files, steps, id)
	for _, step := range slices.Backward(steps) {
		file := slices.IndexFunc(files, func(u fileUndo) bool { return slices.Contains(u.steps, step.Seq) })
		switch {
		case tried[step.Seq] == undone, file < 0 && (!step.Changed() || q.inFolder(id, step)):
			continue
		case file >= 0 && files[file].last() != step.Seq: // undone with the last change of the file
			continue
		case file >= 0:
			undo = append(undo, files[file].undo(id, step.Call()))
			continue
		}
		s := UndoStep{Step: step.Seq, Call: step.Call()}
		s.Tool, s.Arguments, err = q.opposite(ctx, step)
		switch {
		case tried[step.Seq] == inDoubt:
			s.Problem = "it is unknown whether an earlier try has undone it"
		case !step.Done:
			s.Problem = "it is unknown whether it happened"
		case err != nil:
			s.Problem = err.Error()
		}
		undo = append(undo, s)
	}
	return q.restorable(ctx, id, undo)
}

// tryOutcome is what became of a call that undoes a step.
type tryOutcome int

const (
	undone  tryOutcome = iota + 1
	inDoubt            // the process died during the call
)

// triedUndos returns what earlier undos did, by the steps they undo. The calls of such a
// job are the steps of its journal, in order.
func (q *Queue) triedUndos(ctx context.Context, jobs []Job) (map[int64]tryOutcome, error) {
	tried := map[int64]tryOutcome{}
	for _, j := range jobs {
		var params struct {
			Calls []undoCall `json:"calls"`
		}
		if err := json.Unmarshal(j.Params, &params); err != nil {
			return nil, fault.Wrap(fault.Internal, err, "read job %s", j.ID)
		}
		steps, err := q.Journal(ctx, j.ID)
		if err != nil {
			return nil, err
		}
		made := slices.DeleteFunc(steps, func(s host.Step) bool { return s.Nested() || !s.Called() && s.Name != "fs.restore" })
		for i, step := range made[:min(len(made), len(params.Calls))] {
			switch {
			case !step.Done:
				tried[params.Calls[i].Step] = inDoubt
			case step.Err == nil:
				tried[params.Calls[i].Step] = undone
			}
		}
	}
	return tried, nil
}

// opposite returns the call that undoes a step.
func (q *Queue) opposite(ctx context.Context, step host.Step) (ref tool.Ref, arguments json.RawMessage, err error) {
	called, given, result, ok := step.Calls()
	if !ok {
		return ref, nil, errors.New("only calls of tools and changes of files can be undone")
	}
	revert, ok := q.revertOf(ctx, called)
	if !ok {
		return ref, nil, fmt.Errorf("%s does not declare how it is undone", called)
	}
	arguments, err = revert.Fill(given, result)
	return tool.Ref{Space: called.Space, Name: revert.Tool}, arguments, err
}

// revertOf returns how calls of a tool are undone: as configured, or as the tool declares.
func (q *Queue) revertOf(ctx context.Context, ref tool.Ref) (tool.Revert, bool) {
	source, _ := q.options.Tools.(interface {
		Find(ctx context.Context, ref tool.Ref) (info tool.Info, ok bool)
	})
	var info tool.Info
	if source != nil {
		info, _ = source.Find(ctx, ref)
	}
	if q.options.Revert != nil {
		for _, name := range []string{ref.Name, info.Original} {
			if r, ok := q.options.Revert(tool.Ref{Space: ref.Space, Name: name}); ok {
				return r, true
			}
		}
	}
	return info.Revert()
}
