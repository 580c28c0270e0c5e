package hootenanny

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/toolset"
)

// Jobs runs durable jobs, which survive a restart of the process.
type Jobs interface {
	Submit(ctx context.Context, s JobSpec) (Job, error)
	Status(ctx context.Context, id string) (Job, error)
	// Poll waits until one of the jobs has ended, or all of them, at most timeout.
	// Unknown ids are an error that lists them.
	Poll(ctx context.Context, ids []string, timeout time.Duration, all bool) (done []Job, pending []string, err error)
	Cancel(ctx context.Context, id string) (bool, error)
	// List returns the newest jobs of this backend in a state; "" means all.
	List(ctx context.Context, state string, limit int) (jobs []Job, total int, err error)
	// Active is how many jobs of the caller have not ended.
	Active(ctx context.Context) (int, error)
}

// JobSpec describes a job: the tool and its parameters.
type JobSpec struct {
	Tool    string
	Params  json.RawMessage
	Creator string
	Tags    []string
}

// Job is the state of a job.
type Job struct {
	ID       string
	Tool     string
	State    string // pending, running, complete, failed or cancelled
	Creator  string
	Tags     []string
	Created  time.Time
	Started  time.Time // zero before it started
	Finished time.Time // zero before it ended
	Progress float64
	Message  string
	Result   json.RawMessage
	Error    *fault.Error
}

// Task is one run of a job.
type Task struct {
	ID       string
	Tool     string
	Params   json.RawMessage
	Progress func(fraction float64, message string)
	// Step runs do once, even if the job is restarted: its outcome is stored and
	// returned instead of running do again.
	Step func(ctx context.Context, name string, do func(ctx context.Context) (json.RawMessage, error)) (json.RawMessage, error)
}

// worker runs the jobs of one tool.
type worker func(ctx context.Context, t Task) (any, error)

// RunJob runs a job. The error is why it failed.
func (h *Backend) RunJob(ctx context.Context, t Task) (json.RawMessage, error) {
	do, ok := h.workers[t.Tool]
	if !ok {
		return nil, fault.New(fault.NotFound, "no job of tool %q", t.Tool)
	}
	out, err := do(ctx, t)
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// workerOf returns a worker that decodes the parameters into In.
func workerOf[In any](do func(ctx context.Context, t Task, in In) (any, error)) worker {
	return func(ctx context.Context, t Task) (any, error) {
		var in In
		if err := json.Unmarshal(t.Params, &in); err != nil {
			return nil, fault.Wrap(fault.Internal, err, "read the params of job %s", t.ID)
		}
		return do(ctx, t, in)
	}
}

// stepped runs a step whose outcome is an Out.
func stepped[Out any](ctx context.Context, t Task, name string, do func(ctx context.Context) (Out, error)) (out Out, err error) {
	raw, err := t.Step(ctx, name, func(ctx context.Context) (json.RawMessage, error) {
		out, err := do(ctx)
		if err != nil {
			return nil, err
		}
		return json.Marshal(out)
	})
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(raw, &out)
}

// StartedJob is the result of a tool that started a job.
type StartedJob struct {
	JobID  string `json:"job_id" jsonschema:"wait for it with job_poll, then get its result with job_status"`
	Status string `json:"status"`
	Tool   string `json:"tool"`
}

// Text is one line.
func (b StartedJob) Text() string { return fmt.Sprintf("%s started as job %s", b.Tool, b.JobID) }

// begin submits a job.
func (h *Backend) begin(ctx context.Context, call tool.Call, params any, k Lineage) (StartedJob, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return StartedJob{}, fault.Wrap(fault.Internal, err, "begin %s", call.Ref.Name)
	}
	creator := k.Creator
	if creator == "" && call.Caller != nil {
		creator = call.Caller.User
	}
	j, err := h.jobs.Submit(ctx, JobSpec{Tool: call.Ref.Name, Params: raw, Creator: creator, Tags: k.Tags})
	if err != nil {
		return StartedJob{}, err
	}
	return StartedJob{JobID: j.ID, Status: j.State, Tool: call.Ref.Name}, nil
}

// noJobs refuses all jobs.
type noJobs struct{}

func (noJobs) refuse() error {
	return fault.New(fault.Unavailable, "this process runs no jobs").
		WithHint("the server that has this data folder open runs them; call the tool there, or stop that server")
}

func (n noJobs) Submit(context.Context, JobSpec) (Job, error) { return Job{}, n.refuse() }
func (n noJobs) Status(context.Context, string) (Job, error)  { return Job{}, n.refuse() }
func (n noJobs) Cancel(context.Context, string) (bool, error) { return false, n.refuse() }
func (n noJobs) Active(context.Context) (int, error)          { return 0, nil }

func (n noJobs) Poll(context.Context, []string, time.Duration, bool) ([]Job, []string, error) {
	return nil, nil, n.refuse()
}

func (n noJobs) List(context.Context, string, int) ([]Job, int, error) { return nil, 0, n.refuse() }

func (h *Backend) jobTools() []toolset.Tool {
	return []toolset.Tool{
		define("job_status", reads(), h.jobStatus),
		define("job_list", reads(), h.jobList),
		define("job_cancel", changes(), h.jobCancel),
		define("job_poll", reads(), h.jobPoll),
		define("job_sleep", reads(), h.jobSleep),
	}
}

// JobView is a job in the results of tools.
type JobView struct {
	JobID    string         `json:"job_id"`
	Status   string         `json:"status"`
	Tool     string         `json:"tool,omitempty"`
	Creator  string         `json:"creator,omitempty"`
	Tags     []string       `json:"tags,omitempty"`
	Progress float64        `json:"progress" jsonschema:"from 0 to 1"`
	Message  string         `json:"message,omitempty"`
	Result   toolset.Object `json:"result,omitempty" jsonschema:"the result; a result that is not an object is in its field value"`
	Error    *JobError      `json:"error,omitempty"`
	Created  int64          `json:"created_at" jsonschema:"seconds since 1970"`
	Started  int64          `json:"started_at,omitempty"`
	Finished int64          `json:"completed_at,omitempty"`
}

// JobError is why a job failed.
type JobError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Text is one line.
func (v JobView) Text() string {
	text := fmt.Sprintf("Job %s: %s", v.JobID, v.Status)
	if v.Tool != "" {
		text += " (" + v.Tool + ")"
	}
	switch {
	case v.Error != nil:
		text += ": " + v.Error.Message
	case v.Message != "" && v.Status == "running":
		text += fmt.Sprintf(", %.0f%%, %s", 100*v.Progress, v.Message)
	}
	return text
}

func jobView(j Job) JobView {
	v := JobView{JobID: j.ID, Status: j.State, Tool: j.Tool, Creator: j.Creator, Tags: j.Tags, Progress: j.Progress, Message: j.Message, Result: objectOf(j.Result), Created: j.Created.Unix()}
	if j.State == "complete" {
		v.Progress = 1
	}
	if j.Error != nil {
		v.Error = &JobError{Code: string(j.Error.Code), Message: j.Error.Error(), Hint: fault.HintOf(j.Error)}
	}
	if !j.Started.IsZero() {
		v.Started = j.Started.Unix()
	}
	if !j.Finished.IsZero() {
		v.Finished = j.Finished.Unix()
	}
	return v
}

// objectOf returns a result as an object. Results of music jobs are objects, those
// of scripts may be any value.
func objectOf(raw json.RawMessage) toolset.Object {
	trimmed := bytes.TrimSpace(raw)
	switch {
	case len(trimmed) == 0:
		return nil
	case trimmed[0] == '{':
		return toolset.Object(raw)
	default:
		return toolset.Object(`{"value":` + string(raw) + `}`)
	}
}

type jobIn struct {
	JobID string `json:"job_id" jsonschema:"id of a job" min:"1" max:"64"`
}

func (h *Backend) jobStatus(ctx context.Context, _ tool.Call, in jobIn) (JobView, error) {
	j, err := h.jobs.Status(ctx, in.JobID)
	if err != nil {
		return JobView{}, err
	}
	return jobView(j), nil
}

type jobListIn struct {
	Status string `json:"status,omitempty" jsonschema:"only jobs in this state" enum:"pending,running,complete,failed,cancelled"`
	Limit  int    `json:"limit,omitempty" jsonschema:"maximum number; default 100" min:"1" max:"1000"`
}

// JobList is a list of jobs, the newest first.
type JobList struct {
	Jobs  []JobView `json:"jobs"`
	Total int       `json:"total"`
}

// Text has one line per item.
func (l JobList) Text() string {
	lines := []string{fmt.Sprintf("Found %d jobs (showing %d)", l.Total, len(l.Jobs))}
	for _, v := range l.Jobs {
		lines = append(lines, v.Text())
	}
	return strings.Join(lines, "\n")
}

func (h *Backend) jobList(ctx context.Context, _ tool.Call, in jobListIn) (JobList, error) {
	if in.Limit == 0 {
		in.Limit = 100
	}
	jobs, total, err := h.jobs.List(ctx, in.Status, in.Limit)
	l := JobList{Jobs: []JobView{}, Total: total}
	for _, j := range jobs {
		l.Jobs = append(l.Jobs, jobView(j))
	}
	return l, err
}

// JobCancelled is the result of cancelling a job.
type JobCancelled struct {
	JobID   string `json:"job_id"`
	Success bool   `json:"success" jsonschema:"false if it had already ended"`
}

// Text is one line.
func (c JobCancelled) Text() string {
	if c.Success {
		return "Cancelled job " + c.JobID
	}
	return "Job " + c.JobID + " had already ended"
}

func (h *Backend) jobCancel(ctx context.Context, _ tool.Call, in jobIn) (JobCancelled, error) {
	done, err := h.jobs.Cancel(ctx, in.JobID)
	return JobCancelled{in.JobID, done}, err
}

// Limits for waiting, below the usual timeouts of clients and connections.
const (
	longestPoll  = 30 * time.Second
	longestSleep = 30 * time.Second
	pollStep     = 5 * time.Second // interval of progress messages to the caller
)

type jobPollIn struct {
	JobIDs  []string `json:"job_ids,omitempty" jsonschema:"ids of jobs; with none it only waits" max:"1000"`
	Timeout int      `json:"timeout_ms" jsonschema:"how long to wait, at most 30000" min:"0" max:"600000"`
	Mode    string   `json:"mode,omitempty" jsonschema:"return when any of them has ended (default), or all" enum:"any,all"`
}

// JobsPolled is the result of polling jobs.
type JobsPolled struct {
	Completed []JobView `json:"completed" jsonschema:"jobs that completed"`
	Failed    []JobView `json:"failed" jsonschema:"jobs that failed or were cancelled"`
	Pending   []string  `json:"pending" jsonschema:"ids of jobs that have not ended"`
	TimedOut  bool      `json:"timed_out"`
	Reason    string    `json:"reason" jsonschema:"job_complete or timeout"`
	Elapsed   int64     `json:"elapsed_ms"`
}

// Text is one line.
func (p JobsPolled) Text() string {
	how := "complete"
	if p.TimedOut {
		how = "timed out"
	}
	return fmt.Sprintf("Poll %s. %d completed, %d failed, %d still pending.", how, len(p.Completed), len(p.Failed), len(p.Pending))
}

func (h *Backend) jobPoll(ctx context.Context, call tool.Call, in jobPollIn) (JobsPolled, error) {
	began, left := h.clock.Now(), min(time.Duration(in.Timeout)*time.Millisecond, longestPoll)
	p := JobsPolled{Completed: []JobView{}, Failed: []JobView{}, Pending: []string{}, Reason: "job_complete"}
	if len(in.JobIDs) == 0 {
		p.TimedOut, p.Reason = true, "timeout"
		err := h.clock.Sleep(ctx, left)
		p.Elapsed = h.clock.Now().Sub(began).Milliseconds()
		return p, err
	}
	var done []Job
	for {
		var err error
		done, p.Pending, err = h.jobs.Poll(ctx, in.JobIDs, min(left, pollStep), in.Mode == "all")
		if err != nil {
			return JobsPolled{}, err
		}
		left -= pollStep
		if len(p.Pending) == 0 || in.Mode != "all" && len(done) > 0 {
			break
		}
		if left <= 0 {
			p.TimedOut, p.Reason = true, "timeout"
			break
		}
		report(call, float64(len(done)), float64(len(in.JobIDs)), fmt.Sprintf("%d of %d jobs have ended", len(done), len(in.JobIDs)))
	}
	for _, j := range done {
		if j.State == "complete" {
			p.Completed = append(p.Completed, jobView(j))
		} else {
			p.Failed = append(p.Failed, jobView(j))
		}
	}
	p.Pending = append([]string{}, p.Pending...)
	p.Elapsed = h.clock.Now().Sub(began).Milliseconds()
	return p, nil
}

// report sends the progress of a call to the caller.
func report(call tool.Call, done, total float64, message string) {
	if call.Caller != nil && call.Caller.Progress != nil {
		call.Caller.Progress(tool.Progress{Progress: done, Total: total, Message: message})
	}
}

type jobSleepIn struct {
	Milliseconds int `json:"milliseconds" jsonschema:"how long" min:"0" max:"30000"`
}

// SleepResult is the result of job_sleep.
type SleepResult struct {
	Slept int64 `json:"slept_ms"`
}

// Text is one line.
func (s SleepResult) Text() string { return fmt.Sprintf("Slept %d ms", s.Slept) }

func (h *Backend) jobSleep(ctx context.Context, _ tool.Call, in jobSleepIn) (SleepResult, error) {
	began := h.clock.Now()
	err := h.clock.Sleep(ctx, min(time.Duration(in.Milliseconds)*time.Millisecond, longestSleep))
	return SleepResult{h.clock.Now().Sub(began).Milliseconds()}, err
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
