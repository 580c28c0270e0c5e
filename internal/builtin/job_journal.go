package builtin

import (
	"context"
	"fmt"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/cas"
)

type jobJournalIn struct {
	JobID string `json:"job_id" jsonschema:"id of a job" min:"1" max:"64"`
	From  int    `json:"from,omitempty" jsonschema:"number of steps to skip" min:"0"`
	Limit int    `json:"limit,omitempty" jsonschema:"maximum number of steps; default 200" min:"1" max:"1000"`
}

// Journaled is the result of job_journal.
type Journaled struct {
	Steps []StepView `json:"steps"`
	Total int        `json:"total" jsonschema:"of the whole journal"`
}

// StepView is a step of a journal, without its outcome.
type StepView struct {
	Step   int64   `json:"step" jsonschema:"number of the effect in the script's order"`
	Effect string  `json:"effect" jsonschema:"such as mcp.call or fs.write"`
	Kind   string  `json:"kind" enum:"read,repeat,write,moment"`
	Call   string  `json:"call" jsonschema:"as written in a script, shortened"`
	Time   float64 `json:"time" jsonschema:"end, or start if not done; seconds since 1970"`
	Done   bool    `json:"done" jsonschema:"false if its outcome is unknown"`
	Error  string  `json:"error,omitempty" jsonschema:"its error"`
}

// stepData is a view with the outcome.
type stepData struct {
	StepView
	Outcome []host.Value `json:"outcome,omitempty"`
}

func stepView(s host.Step) stepData {
	v := StepView{Step: s.Seq, Effect: host.ShownName(s.Name), Kind: s.Kind.String(), Call: s.Call(), Time: seconds(s.At), Done: s.Done}
	if s.Err != nil {
		v.Error = s.Err.Error()
	}
	return stepData{v, s.Values}
}

// Text returns one line.
func (v StepView) Text() string {
	switch {
	case !v.Done:
		return fmt.Sprintf("%4d  %s  … not done", v.Step, v.Call)
	case v.Error != "":
		return fmt.Sprintf("%4d  %s  ! %s", v.Step, v.Call, v.Error)
	default:
		return fmt.Sprintf("%4d  %s", v.Step, v.Call)
	}
}

func (t jobTools) journal(ctx context.Context, _ tool.Call, in jobJournalIn) (tool.Result, error) {
	steps, err := t.queue.Journal(ctx, in.JobID)
	if err != nil {
		return tool.Result{}, err
	}
	if in.Limit == 0 {
		in.Limit = 200
	}
	shown := steps[min(in.From, len(steps)):min(in.From+in.Limit, len(steps))]
	data := []stepData{}
	for _, step := range shown {
		data = append(data, stepView(step))
	}
	return tool.Output(journalText(data, min(in.From, len(steps)), len(steps)), map[string]any{"steps": data, "total": len(steps)})
}

type jobReplayIn struct {
	JobID      string `json:"job_id" jsonschema:"id of a finished job" min:"1" max:"64"`
	Code       string `json:"code,omitempty" jsonschema:"another script to run with the same answers" max:"1048576"`
	Language   string `json:"language,omitempty" jsonschema:"of code; default: that of the job's script" enum:"lua,javascript"`
	ScriptHash string `json:"script_hash,omitempty" jsonschema:"hash of another stored script"`
}

// Replayed is the result of job_replay, without the script's own result.
type Replayed struct {
	Steps    int          `json:"steps" jsonschema:"in the journal"`
	Unused   int          `json:"unused" jsonschema:"steps that the script did not ask for"`
	Diverged bool         `json:"diverged" jsonschema:"true if the script's effects differ from the journal"`
	Error    *JobError    `json:"error,omitempty" jsonschema:"why it failed, or where it differs"`
	Output   []JobLogLine `json:"output" jsonschema:"what it printed and logged"`
}

// Text returns a summary.
func (r Replayed) Text() string {
	switch {
	case r.Diverged:
		return "Replay differs from the journal: " + r.Error.text()
	case r.Error != nil:
		return "The script failed: " + r.Error.text()
	default:
		return fmt.Sprintf("Replay complete: %s answered from the journal, %d unused", count(r.Steps-r.Unused, "step"), r.Unused)
	}
}

func (t jobTools) replay(ctx context.Context, _ tool.Call, in jobReplayIn) (tool.Result, error) {
	other, err := t.otherScript(ctx, in)
	if err != nil {
		return tool.Result{}, err
	}
	r, err := t.queue.Replay(ctx, in.JobID, other)
	if err != nil {
		return tool.Result{}, err
	}
	v := Replayed{Steps: r.Steps, Unused: r.Left, Diverged: r.Diverged, Error: jobError(r.Error), Output: append([]JobLogLine{}, logLines(r.Output)...)}
	text := v.Text()
	if len(r.Result) > 0 {
		text += "\nResult: " + shortened(script.Pretty(r.Result), mostJobText)
	}
	if len(v.Output) > 0 {
		text += "\nOutput:\n  " + shortened(outputText(v.Output), mostJobText)
	}
	return tool.Output(text, struct {
		Replayed
		Result JSON `json:"result,omitempty"`
	}{v, r.Result})
}

// otherScript returns the script to run instead of the job's own.
func (t jobTools) otherScript(ctx context.Context, in jobReplayIn) (job.Script, error) {
	switch {
	case in.Code != "" && in.Language != "":
		return job.Script{Source: in.Code, Language: in.Language}, nil
	case in.Code != "":
		j, err := t.queue.Status(ctx, in.JobID)
		if err != nil {
			return job.Script{}, err
		}
		other := job.Script{Source: in.Code}
		if ref, err := cas.Parse(j.Hash); err == nil {
			other.Language = t.runner.LanguageOf(ctx, ref)
		}
		return other, nil
	case in.ScriptHash != "":
		ref, source, err := t.load(ctx, in.ScriptHash)
		return job.Script{Source: source, Hash: ref.String()}, err
	default:
		return job.Script{}, nil
	}
}
