// Package jobtools are the tools for scripts in the background: jobs, schedules and traces.
// Tools are also resources and MCP tasks.
package jobtools

import (
	"context"
	"embed"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/plural"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/builtin/scripttools"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/tools/toolset"
)

//go:embed *.md
var texts embed.FS

// Tools makes the tools for scripts in the background.
func Tools(q *job.Queue, s *artifact.Store, r *script.Runner) []toolset.Tool {
	t := jobTools{q, s, r}
	look := tool.Hints{ReadOnly: true, ClosedWorld: true}
	return []toolset.Tool{
		toolset.Checked(toolset.AsTask(toolset.DefineResult[executeIn, Execution](texts, "lua_execute", tool.Hints{}, t.execute)), t.refusesExecution),
		toolset.Define(texts, "job_status", look, t.status),
		toolset.Define(texts, "job_poll", look, t.poll),
		toolset.Checked(toolset.Define(texts, "job_cancel", tool.Hints{Idempotent: true, ClosedWorld: true}, t.cancel), t.refusesChange),
		toolset.Define(texts, "job_list", look, t.list),
		toolset.Define(texts, "job_stats", look, t.stats),
		toolset.Define(texts, "job_logs", look, t.logs),
		toolset.Define(texts, "job_journal", look, t.journal),
		toolset.Define(texts, "job_replay", look, t.replay),
		toolset.Checked(toolset.Define(texts, "job_undo", tool.Hints{}, t.undo), t.refusesChange),
		toolset.Checked(toolset.Define(texts, "job_resume", tool.Hints{}, t.resume), t.refusesResume),
	}
}

type jobTools struct {
	queue   *job.Queue
	scripts *artifact.Store
	runner  *script.Runner
}

type jobIn struct {
	JobID string `json:"job_id" jsonschema:"id of a job, from lua_execute" min:"1" max:"64"`
}

func (t jobTools) status(ctx context.Context, _ tool.Call, in jobIn) (JobView, error) {
	j, err := t.queue.Status(ctx, in.JobID)
	if err != nil {
		return JobView{}, err
	}
	return fullView(&j), nil
}

type jobPollIn struct {
	JobIDs    []string `json:"job_ids" jsonschema:"ids of the jobs to wait for" min:"1" max:"1000"`
	TimeoutMS int64    `json:"timeout_ms" jsonschema:"maximum time to wait" min:"0" max:"60000"`
	Mode      string   `json:"mode,omitempty" jsonschema:"any: until one has ended; all: until all have. Default any" enum:"any,all"`
}

// JobPoll is the result of job_poll.
type JobPoll struct {
	Completed []JobView `json:"completed" jsonschema:"the jobs that have ended"`
	Pending   []string  `json:"pending" jsonschema:"ids of the others"`
	TimedOut  bool      `json:"timed_out" jsonschema:"true if the wait timed out"`
}

// progressInterval is the interval of progress notifications to a waiting client.
const progressInterval = 5 * time.Second

func (t jobTools) poll(ctx context.Context, call tool.Call, in jobPollIn) (JobPoll, error) {
	all := in.Mode == "all"
	left := time.Duration(in.TimeoutMS) * time.Millisecond
	report := newPollReport(call.Caller, in.JobIDs)
	defer report.watch(ctx, t.queue)()
	for {
		slice := min(left, progressInterval)
		left -= slice
		done, pending, err := t.queue.Poll(ctx, in.JobIDs, slice, all)
		if err != nil {
			return JobPoll{}, err
		}
		over := len(pending) == 0 || !all && len(done) > 0
		if over || left <= 0 {
			return polled(done, pending, !over), nil
		}
		report.waiting(done, pending)
	}
}

func polled(done []job.Job, pending []string, timedOut bool) JobPoll {
	p := JobPoll{Completed: []JobView{}, Pending: append([]string{}, pending...), TimedOut: timedOut}
	for i := range done {
		p.Completed = append(p.Completed, fullView(&done[i]))
	}
	return p
}

// JobCancelled is the result of job_cancel.
type JobCancelled struct {
	JobID   string `json:"job_id"`
	Success bool   `json:"success" jsonschema:"false if the job had already ended"`
}

// Text returns it as one line.
func (c JobCancelled) Text() string {
	if c.Success {
		return "Job " + c.JobID + " cancelled"
	}
	return "Job " + c.JobID + " had already ended"
}

func (t jobTools) cancel(ctx context.Context, _ tool.Call, in jobIn) (JobCancelled, error) {
	done, err := t.queue.Cancel(ctx, in.JobID)
	return JobCancelled{in.JobID, done}, err
}

func (t jobTools) refusesChange(ctx context.Context, _ tool.Call, in jobIn) error {
	return t.queue.MayChange(ctx, principal.Job, in.JobID)
}

type executeIn struct {
	ScriptHash string         `json:"script_hash,omitempty" jsonschema:"hash of a stored script, or at least its first 12 digits"`
	Script     string         `json:"script,omitempty" jsonschema:"alternative: cas:HASH"`
	Params     toolset.Object `json:"params,omitempty" jsonschema:"the argument of main"`
	Creator    string         `json:"creator,omitempty" jsonschema:"who starts it; jobs of different creators are scheduled fairly" max:"256"`
	Tags       []string       `json:"tags,omitempty" jsonschema:"tags to find the job by" max:"64"`
	Priority   int            `json:"priority,omitempty" jsonschema:"higher runs first among the jobs of one creator" min:"-100" max:"100"`
	DelayMS    int64          `json:"delay_ms,omitempty" jsonschema:"delay before it starts" min:"0" max:"2592000000"`
	StartAt    string         `json:"start_at,omitempty" jsonschema:"or the time at which it starts, such as 2026-12-24T18:00:00Z" max:"64"`
	Schedule   string         `json:"schedule,omitempty" jsonschema:"cron expression to start it repeatedly: 0 7 * * 1-5, @daily, @every 10m" max:"256"`
	Timezone   string         `json:"timezone,omitempty" jsonschema:"of the schedule, such as Europe/Berlin; default: the server's own" max:"64"`
}

// Execution is the result of lua_execute: a job, or a schedule of jobs. Clients that support
// tasks get the job as a task, and this with status and result when it has ended.
type Execution struct {
	JobID      string       `json:"job_id,omitempty" jsonschema:"for job_poll and job_status"`
	ScheduleID string       `json:"schedule_id,omitempty" jsonschema:"instead of job_id if there is a schedule"`
	NextRun    float64      `json:"next_run,omitempty" jsonschema:"next start of the schedule or delayed job; seconds since 1970"`
	Status     string       `json:"status,omitempty" jsonschema:"only as the result of a task, with result: how the job ended"`
	Result     toolset.JSON `json:"result,omitempty" schema:"-"`
}

// Text returns the id.
func (e Execution) Text() string {
	text := "Script execution started. Job ID: " + e.JobID
	if e.ScheduleID != "" {
		text = "Script execution scheduled. Schedule ID: " + e.ScheduleID
	}
	if e.NextRun > 0 {
		text += ". Next run: " + builtin.TimeText(e.NextRun)
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
		e := Execution{ScheduleID: s.ID, NextRun: builtin.Seconds(s.Next)}
		return tool.Output(e.Text(), e)
	}
	j, err := t.queue.Submit(ctx, spec)
	if err != nil {
		return tool.Result{}, err
	}
	e := Execution{JobID: j.ID}
	if j.Due.After(j.Created) {
		e.NextRun = builtin.Seconds(j.Due)
	}
	result, err := tool.Output(e.Text(), e)
	result.Task = j.ID
	return result, err
}

func (t jobTools) refusesExecution(ctx context.Context, call tool.Call, in executeIn) error {
	_, err := t.spec(ctx, call, in)
	return err
}

// spec returns the job that the arguments ask for.
func (t jobTools) spec(ctx context.Context, call tool.Call, in executeIn) (job.Spec, error) {
	name, err := scripttools.Named("lua_execute", in.ScriptHash, in.Script)
	if err != nil {
		return job.Spec{}, err
	}
	start, err := in.start(time.Now())
	if err != nil {
		return job.Spec{}, err
	}
	ref, source, err := scripttools.Load(ctx, t.scripts, name)
	if err != nil {
		return job.Spec{}, err
	}
	ready, err := t.runner.Prepare(ctx, scripttools.Attributed(call, script.Request{Source: source, Hash: ref, Params: scripttools.OrEmpty(in.Params), Main: true}))
	if err != nil {
		return job.Spec{}, scripttools.Fault(err)
	}
	if in.Creator == "" && call.Caller != nil {
		in.Creator = call.Caller.ID
	}
	return job.Spec{
		Name: ready.OwnName(), Hash: ref.String(), Source: ready.Source, Params: ready.Params, Creator: in.Creator,
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

// pollReport passes the progress of jobs to the client that waits for them. The progress is
// the number of jobs: half of one job is 0.5. It never decreases.
type pollReport struct {
	caller *tool.Caller
	ids    []string

	mu        sync.Mutex
	fractions map[string]float64 // by the job's id
	last      float64
}

func newPollReport(caller *tool.Caller, ids []string) *pollReport {
	return &pollReport{caller: caller, ids: ids, fractions: make(map[string]float64, len(ids))}
}

// watch reports what the jobs report, until stop is called.
func (r *pollReport) watch(ctx context.Context, q *job.Queue) (stop func()) {
	if r.caller == nil || r.caller.Progress == nil {
		return func() {}
	}
	var stops []func()
	for _, id := range r.ids {
		stops = append(stops, q.Watch(ctx, id, func(fraction float64, message string) { r.job(id, fraction, message) }))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// job reports the progress of one job.
func (r *pollReport) job(id string, fraction float64, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fractions[id] = fraction
	r.send(message)
}

// waiting reports that jobs have not ended yet, so that the client does not time out.
func (r *pollReport) waiting(done []job.Job, pending []string) {
	if r.caller == nil || r.caller.Progress == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range done {
		r.fractions[done[i].ID] = 1
	}
	r.send(plural.Count(len(pending), "job") + " not finished")
}

// send sends the sum of all jobs; mu is held.
func (r *pollReport) send(message string) {
	sum := 0.0
	for _, fraction := range r.fractions {
		sum += fraction
	}
	if sum <= r.last {
		sum = r.last + 1e-6 // clients may ignore a report without progress
	}
	r.last = min(sum, float64(len(r.ids)))
	r.caller.Progress(tool.Progress{Progress: r.last, Total: float64(len(r.ids)), Message: message})
}

// Undone is the result of job_undo.
type Undone struct {
	JobID      string               `json:"job_id" jsonschema:"the job that is undone"`
	Status     string               `json:"status" jsonschema:"nothing: no change can be undone; denied: the person refused; otherwise the status of the job that undoes it" enum:"nothing,denied,pending,running,waiting,complete,failed,cancelled"`
	UndoJobID  string               `json:"undo_job_id,omitempty" jsonschema:"the job that makes the calls"`
	ApprovalID string               `json:"approval_id,omitempty" jsonschema:"of the approval that it waits for"`
	Steps      []UndoStep           `json:"steps" jsonschema:"the changes, in the order in which they are undone"`
	Error      *builtin.ScriptError `json:"error,omitempty" jsonschema:"why the job that undoes it failed"`
}

// UndoStep is one change of a job and the call that undoes it.
type UndoStep struct {
	Step    int64  `json:"step" jsonschema:"number of the change, as in job_journal"`
	Change  string `json:"change" jsonschema:"as written in a script, shortened"`
	Tool    string `json:"tool,omitempty" jsonschema:"what undoes it"`
	Problem string `json:"problem,omitempty" jsonschema:"why it cannot be undone"`

	Arguments toolset.Object `json:"arguments,omitempty" jsonschema:"of that call"`
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
		lines = append(lines, u.Error.Text())
	}
	return strings.Join(lines, "\n")
}

// undoWait is how long job_undo waits for the end of the job that makes the calls.
const undoWait = time.Minute

func (t jobTools) undo(ctx context.Context, call tool.Call, in jobIn) (Undone, error) {
	u, err := t.queue.Undo(ctx, in.JobID)
	if err != nil {
		return Undone{}, err
	}
	out := Undone{JobID: in.JobID, Status: "nothing", UndoJobID: u.ID, Steps: undoSteps(u.Steps)}
	if u.ID == "" {
		return out, nil
	}
	var answer host.Answer
	answered, err := script.Settle(ctx, call.Caller, u.Asked, &u.Paused, func(said host.Answer) error {
		answer = said
		return t.queue.AnswerUndo(ctx, u, said)
	})
	if err != nil {
		return Undone{}, err
	}
	if answered && !answer.Allow {
		out.Status, out.UndoJobID = "denied", ""
		return out, nil
	}
	if _, err := t.queue.StartUndo(ctx, u); err != nil {
		return Undone{}, err
	}
	if !answered {
		out.Status, out.ApprovalID = string(job.Waiting), u.Asked.ID
		return out, nil
	}
	return t.undone(ctx, out)
}

// undone waits for the job that makes the calls.
func (t jobTools) undone(ctx context.Context, out Undone) (Undone, error) {
	if _, _, err := t.queue.Poll(ctx, []string{out.UndoJobID}, undoWait, true); err != nil {
		return Undone{}, err
	}
	j, err := t.queue.Status(ctx, out.UndoJobID)
	if err != nil {
		return Undone{}, err
	}
	out.Status, out.Error = string(j.State), jobError(j.Error)
	return out, nil
}

func undoSteps(steps []job.UndoStep) []UndoStep {
	views := make([]UndoStep, len(steps))
	for i, s := range steps {
		views[i] = UndoStep{Step: s.Step, Change: s.Call, Problem: s.Problem}
		if s.Problem == "" {
			views[i].Tool, views[i].Arguments = s.Tool.String(), toolset.Object(s.Arguments)
		}
	}
	return views
}
