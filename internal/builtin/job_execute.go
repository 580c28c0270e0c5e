package builtin

import (
	"context"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/scripting/script"
)

type executeIn struct {
	ScriptHash string   `json:"script_hash,omitempty" jsonschema:"hash of a stored script, or its first 12 digits or more"`
	Script     string   `json:"script,omitempty" jsonschema:"the same as cas:HASH; give one of the two"`
	Params     Object   `json:"params,omitempty" jsonschema:"the argument of main"`
	Creator    string   `json:"creator,omitempty" jsonschema:"who starts it; jobs of different creators take turns" max:"256"`
	Tags       []string `json:"tags,omitempty" jsonschema:"words to find the job by" max:"64"`
	Priority   int      `json:"priority,omitempty" jsonschema:"higher goes first among the jobs of one creator" min:"-100" max:"100"`
	DelayMS    int64    `json:"delay_ms,omitempty" jsonschema:"how long it waits before it starts" min:"0" max:"2592000000"`
	StartAt    string   `json:"start_at,omitempty" jsonschema:"or when it starts, such as 2026-12-24T18:00:00Z" max:"64"`
	Schedule   string   `json:"schedule,omitempty" jsonschema:"cron expression, to start it again and again: 0 7 * * 1-5, @daily, @every 10m" max:"256"`
	Timezone   string   `json:"timezone,omitempty" jsonschema:"in which the schedule is meant, such as Europe/Berlin; the server's own unless told" max:"64"`
}

// Execution is what lua_execute answers: a job, or a schedule of jobs. Clients
// that know tasks get the job as a task, and this with status and result when it
// is over.
type Execution struct {
	JobID      string  `json:"job_id,omitempty" jsonschema:"ask for it with job_poll or job_status"`
	ScheduleID string  `json:"schedule_id,omitempty" jsonschema:"in place of job_id when there is a schedule"`
	NextRun    float64 `json:"next_run,omitempty" jsonschema:"when the schedule or the delayed job starts; seconds since 1970"`
	Status     string  `json:"status,omitempty" jsonschema:"only as the result of a task, with result: how the job ended"`
}

// Text gives the id.
func (e Execution) Text() string {
	text := "Script execution started. Job ID: " + e.JobID
	if e.ScheduleID != "" {
		text = "Script execution scheduled. Schedule ID: " + e.ScheduleID
	}
	if e.NextRun > 0 {
		text += ". Next run: " + timeText(e.NextRun)
	}
	return text
}

func (t jobTools) execute(ctx context.Context, call tool.Call, in executeIn) (tool.Result, error) {
	spec, err := t.spec(ctx, call, in)
	if err != nil {
		return tool.Result{}, err
	}
	if in.Schedule != "" {
		s, err := t.queue.Schedule(ctx, spec, in.Schedule, in.Timezone)
		if err != nil {
			return tool.Result{}, err
		}
		e := Execution{ScheduleID: s.ID, NextRun: seconds(s.Next)}
		return tool.Output(e.Text(), e)
	}
	j, err := t.queue.Submit(ctx, spec)
	if err != nil {
		return tool.Result{}, err
	}
	e := Execution{JobID: j.ID}
	if j.Due.After(j.Created) {
		e.NextRun = seconds(j.Due)
	}
	result, err := tool.Output(e.Text(), e)
	result.Task = j.ID
	return result, err
}

// spec is the job that arguments ask for.
func (t jobTools) spec(ctx context.Context, call tool.Call, in executeIn) (job.Spec, error) {
	name, err := named("lua_execute", in.ScriptHash, in.Script)
	if err != nil {
		return job.Spec{}, err
	}
	start, err := in.start(time.Now())
	if err != nil {
		return job.Spec{}, err
	}
	ref, source, err := t.load(ctx, name)
	if err != nil {
		return job.Spec{}, err
	}
	ready, err := t.runner.Prepare(ctx, attributed(call, script.Request{Source: source, Hash: ref, Params: orEmpty(in.Params), Main: true}))
	if err != nil {
		return job.Spec{}, scriptFault(err)
	}
	if in.Creator == "" && call.Caller != nil {
		in.Creator = call.Caller.ID
	}
	return job.Spec{
		Name: ready.Name, Hash: ref.String(), Source: ready.Source, Params: ready.Params, Creator: in.Creator,
		Tags: in.Tags, Priority: in.Priority, Delay: time.Duration(in.DelayMS) * time.Millisecond, Start: start,
	}, nil
}

// farthest is how far ahead a job can be put off.
const farthest = 366 * 24 * time.Hour

// start reads the time to start at, zero for at once, and refuses what
// contradicts itself.
func (in executeIn) start(now time.Time) (at time.Time, err error) {
	switch {
	case in.Schedule != "" && (in.DelayMS != 0 || in.StartAt != ""):
		return at, fault.New(fault.InvalidParams, "lua_execute takes schedule, or delay_ms or start_at, not both").
			WithHint("a schedule says itself when its first job starts")
	case in.Timezone != "" && in.Schedule == "":
		return at, fault.New(fault.InvalidParams, "timezone is for schedule").WithHint("start_at has its own: 2026-12-24T18:00:00+01:00")
	case in.StartAt == "":
		return at, nil
	case in.DelayMS != 0:
		return at, fault.New(fault.InvalidParams, "lua_execute takes delay_ms or start_at, not both")
	}
	if at, err = time.Parse(time.RFC3339, in.StartAt); err != nil {
		return at, fault.New(fault.InvalidParams, "start_at: %q is no time", in.StartAt).
			WithHint("write it as 2026-12-24T18:00:00Z, or with an offset as 2026-12-24T18:00:00+01:00")
	}
	if at.Before(now.Add(-time.Minute)) || at.After(now.Add(farthest)) {
		return at, fault.New(fault.InvalidParams, "start_at: %s is not within a year from now", in.StartAt).
			WithHint("it is %s now", now.UTC().Format(time.RFC3339))
	}
	return at, nil
}
