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
	ScriptHash string   `json:"script_hash,omitempty" jsonschema:"hash of a stored script, or at least its first 12 digits"`
	Script     string   `json:"script,omitempty" jsonschema:"alternative: cas:HASH"`
	Params     Object   `json:"params,omitempty" jsonschema:"the argument of main"`
	Creator    string   `json:"creator,omitempty" jsonschema:"who starts it; jobs of different creators are scheduled fairly" max:"256"`
	Tags       []string `json:"tags,omitempty" jsonschema:"tags to find the job by" max:"64"`
	Priority   int      `json:"priority,omitempty" jsonschema:"higher runs first among the jobs of one creator" min:"-100" max:"100"`
	DelayMS    int64    `json:"delay_ms,omitempty" jsonschema:"delay before it starts" min:"0" max:"2592000000"`
	StartAt    string   `json:"start_at,omitempty" jsonschema:"or the time at which it starts, such as 2026-12-24T18:00:00Z" max:"64"`
	Schedule   string   `json:"schedule,omitempty" jsonschema:"cron expression to start it repeatedly: 0 7 * * 1-5, @daily, @every 10m" max:"256"`
	Timezone   string   `json:"timezone,omitempty" jsonschema:"of the schedule, such as Europe/Berlin; default: the server's own" max:"64"`
}

// Execution is the result of lua_execute: a job, or a schedule of jobs. Clients that support
// tasks get the job as a task, and this with status and result when it has ended.
type Execution struct {
	JobID      string  `json:"job_id,omitempty" jsonschema:"for job_poll and job_status"`
	ScheduleID string  `json:"schedule_id,omitempty" jsonschema:"instead of job_id if there is a schedule"`
	NextRun    float64 `json:"next_run,omitempty" jsonschema:"next start of the schedule or delayed job; seconds since 1970"`
	Status     string  `json:"status,omitempty" jsonschema:"only as the result of a task, with result: how the job ended"`
}

// Text returns the id.
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

// spec returns the job that the arguments ask for.
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

// maxDelay is the longest delay of a job.
const maxDelay = 366 * 24 * time.Hour

// start returns the time to start at, zero for now, and refuses contradictory
// arguments.
func (in executeIn) start(now time.Time) (at time.Time, err error) {
	switch {
	case in.Schedule != "" && (in.DelayMS != 0 || in.StartAt != ""):
		return at, fault.New(fault.InvalidParams, "lua_execute takes schedule, or delay_ms or start_at, not both").
			WithHint("the schedule decides when its first job starts")
	case in.Timezone != "" && in.Schedule == "":
		return at, fault.New(fault.InvalidParams, "timezone is only used with schedule").WithHint("start_at has its own offset: 2026-12-24T18:00:00+01:00")
	case in.StartAt == "":
		return at, nil
	case in.DelayMS != 0:
		return at, fault.New(fault.InvalidParams, "lua_execute takes delay_ms or start_at, not both")
	}
	if at, err = time.Parse(time.RFC3339, in.StartAt); err != nil {
		return at, fault.New(fault.InvalidParams, "start_at: %q is not a time", in.StartAt).
			WithHint("write it as 2026-12-24T18:00:00Z, or with an offset as 2026-12-24T18:00:00+01:00")
	}
	if at.Before(now.Add(-time.Minute)) || at.After(now.Add(maxDelay)) {
		return at, fault.New(fault.InvalidParams, "start_at: %s is not within a year from now", in.StartAt).
			WithHint("it is %s now", now.UTC().Format(time.RFC3339))
	}
	return at, nil
}
