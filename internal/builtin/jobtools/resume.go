package jobtools

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/tools/toolset"
)

type jobResumeIn struct {
	JobID  string `json:"job_id" jsonschema:"id of a failed job with a call in doubt" min:"1" max:"64"`
	Assume string `json:"assume,omitempty" jsonschema:"whether the calls in doubt were carried out; without it nothing is resumed" enum:"done,not_done"`
	Result string `json:"result,omitempty" jsonschema:"with done: what the script gets as the result of a tool call, as JSON; default: {}" max:"1048576"`
}

// Resumed is the result of job_resume.
type Resumed struct {
	JobID   string     `json:"job_id" jsonschema:"the job that failed"`
	NewID   string     `json:"new_job_id,omitempty" jsonschema:"the job that continues it"`
	InDoubt []Doubtful `json:"in_doubt" jsonschema:"the calls of which it is unknown whether they were carried out"`
}

// Doubtful is a call of which it is unknown whether it was carried out.
type Doubtful struct {
	StepView
	Arguments toolset.JSON `json:"arguments,omitempty" schema:"-"` // of a tool
}

func doubtful(s host.Step) Doubtful {
	d := Doubtful{StepView: stepView(s)}
	if s.Called() && len(s.Args) > 0 {
		raw, _ := s.Args[len(s.Args)-1].(json.RawMessage) // a digest if they are large
		d.Arguments = toolset.JSON(raw)
	}
	return d
}

// Text lists the calls in doubt and says how to go on.
func (r Resumed) Text() string {
	if r.NewID != "" {
		return fmt.Sprintf("Job %s continues as job %s", r.JobID, r.NewID)
	}
	text := "It is unknown whether this happened:"
	for _, s := range r.InDoubt {
		text += fmt.Sprintf("\n%4d  %s", s.Step, s.Call)
		if len(s.Arguments) > 0 {
			text += "\n      arguments: " + shortened(string(s.Arguments), mostJobText)
		}
	}
	return text + "\nCheck what it changed. Then resume the job with assume: done, or not_done, which makes the call again."
}

// doubtfulSteps returns the calls in doubt of the job to resume, if it can be.
func (t jobTools) doubtfulSteps(ctx context.Context, in jobResumeIn) ([]host.Step, error) {
	switch {
	case in.Result != "" && in.Assume != "done":
		return nil, fault.New(fault.InvalidParams, "result is for assume: done").WithHint("a call that is made again has its own result")
	case in.Result != "" && !json.Valid([]byte(in.Result)):
		return nil, fault.New(fault.InvalidParams, "result %s is not JSON", in.Result).WithHint(`write a text as "\"text\""`)
	}
	return t.queue.InDoubt(ctx, in.JobID)
}

func (t jobTools) refusesResume(ctx context.Context, _ tool.Call, in jobResumeIn) error {
	_, err := t.doubtfulSteps(ctx, in)
	return err
}

func (t jobTools) resume(ctx context.Context, _ tool.Call, in jobResumeIn) (Resumed, error) {
	steps, err := t.doubtfulSteps(ctx, in)
	if err != nil {
		return Resumed{}, err
	}
	out := Resumed{JobID: in.JobID, InDoubt: []Doubtful{}}
	for _, s := range steps {
		out.InDoubt = append(out.InDoubt, doubtful(s))
	}
	if in.Assume == "" {
		return out, nil
	}
	j, err := t.queue.Resume(ctx, in.JobID, job.Assumption{Done: in.Assume == "done", Result: json.RawMessage(in.Result)})
	out.NewID = j.ID
	return out, err
}
