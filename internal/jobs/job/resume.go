package job

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/scripting/host"
)

// resumeTag is the tag of jobs that continue other jobs.
const resumeTag = "resume"

// Assumption is what somebody has found out about calls in doubt.
type Assumption struct {
	Done   bool            // they were carried out; otherwise they are made again
	Result json.RawMessage // what the script gets as the result of each, if they were; empty is {}
}

// InDoubt returns the calls of a failed job of which it is unknown whether they were carried
// out.
func (q *Queue) InDoubt(ctx context.Context, id string) ([]host.Step, error) {
	_, steps, err := q.doubtful(ctx, id)
	return slices.DeleteFunc(steps, func(s host.Step) bool { return !s.InDoubt() }), err
}

// Resume continues a failed job with calls in doubt, as a new job whose journal begins with
// that of the first. It belongs to the caller.
func (q *Queue) Resume(ctx context.Context, id string, a Assumption) (Job, error) {
	j, steps, err := q.doubtful(ctx, id)
	if err != nil {
		return Job{}, err
	}
	s := j.Spec
	s.Tags = append(slices.DeleteFunc(slices.Clone(s.Tags), isResumeTag), resumeTag, resumeTag+":"+id)
	s.journal, s.continues = host.WriteJournal(withoutRefusals(a.settle(steps))), id
	return q.Submit(ctx, s)
}

// settle returns the steps with an outcome for those in doubt, or without them.
func (a Assumption) settle(steps []host.Step) []host.Step {
	settled := []host.Step{}
	for _, s := range steps {
		switch {
		case s.InDoubt() && a.Done:
			settled = append(settled, s.Assume(a.Result))
		case s.Done:
			settled = append(settled, s)
		}
	}
	return settled
}

// doubtful returns a failed job and its journal, which has calls in doubt.
func (q *Queue) doubtful(ctx context.Context, id string) (Job, []host.Step, error) {
	if err := q.writable(); err != nil {
		return Job{}, nil, err
	}
	if err := q.check(ctx, principal.Job, principal.Edit, id); err != nil {
		return Job{}, nil, err
	}
	j, err := q.Status(ctx, id)
	if err != nil {
		return j, nil, err
	}
	if j.State != Failed {
		return j, nil, fault.New(fault.Conflict, "job %s is %s: only failed jobs can be resumed", id, j.State)
	}
	steps, err := q.Journal(ctx, id)
	if err != nil {
		return j, nil, err
	}
	if !slices.ContainsFunc(steps, host.Step.InDoubt) {
		return j, nil, fault.New(fault.Conflict, "job %s has no call of which it is unknown whether it was carried out", id).
			WithHint("start its script as a new job; job_journal shows what this one did")
	}
	return j, steps, nil
}

func isResumeTag(tag string) bool { return tag == resumeTag || strings.HasPrefix(tag, resumeTag+":") }

// isResumed reports whether the job continues another one.
func (s Spec) isResumed() bool { return slices.Contains(s.Tags, resumeTag) }
