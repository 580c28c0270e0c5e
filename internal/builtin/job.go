package builtin

import (
	"context"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/tools/toolset"
)

// JobQueue runs and stores jobs.
type JobQueue interface {
	Submit(ctx context.Context, s job.Spec) (job.Job, error)
	Schedule(ctx context.Context, s job.Spec, cron, zone string) (job.Schedule, error)
	Status(ctx context.Context, id string) (job.Job, error)
	Poll(ctx context.Context, ids []string, timeout time.Duration, all bool) (done []job.Job, pending []string, err error)
	Cancel(ctx context.Context, id string) (bool, error)
	List(ctx context.Context, f job.Filter, limit int, cursor string) (job.Page, error)
	Stats(ctx context.Context) (map[job.State]int, error)
	Logs(ctx context.Context, id string, from int) ([]host.OutputLine, error)
	Journal(ctx context.Context, id string) ([]host.Step, error)
	Replay(ctx context.Context, id string, other job.Script) (job.Replayed, error)
	Undo(ctx context.Context, id string) (job.Undo, error)
	AnswerUndo(ctx context.Context, u job.Undo, answer host.Answer) error
	StartUndo(ctx context.Context, u job.Undo) (job.Job, error)
	Watch(ctx context.Context, id string, see func(fraction float64, message string)) (stop func())
	Retention(s job.State) time.Duration
}

// JobScripts finds stored scripts.
type JobScripts interface {
	Resolve(ctx context.Context, text string) (cas.Ref, error)
	Read(ctx context.Context, ref cas.Ref, limit int64) ([]byte, error)
}

// JobRunner checks scripts before they become jobs.
type JobRunner interface {
	// Prepare checks params against describe() and fills in defaults.
	Prepare(ctx context.Context, q script.Request) (script.Request, error)
	// LanguageOf returns the language of a stored script.
	LanguageOf(ctx context.Context, ref cas.Ref) string
}

// Jobs makes the tools for scripts in the background.
func Jobs(q JobQueue, s JobScripts, r JobRunner) []Tool {
	t := jobTools{q, s, r}
	look := tool.Hints{ReadOnly: true, ClosedWorld: true}
	return []Tool{
		toolset.AsTask(runs[executeIn, Execution]("lua_execute", tool.Hints{}, t.execute)),
		runs[jobIn, JobView]("job_status", look, t.status),
		runs[jobPollIn, JobPoll]("job_poll", look, t.poll),
		Define("job_cancel", tool.Hints{Idempotent: true, ClosedWorld: true}, t.cancel),
		runs[jobListIn, JobList]("job_list", look, t.list),
		Define("job_stats", look, t.stats),
		Define("job_logs", look, t.logs),
		runs[jobJournalIn, Journaled]("job_journal", look, t.journal),
		runs[jobReplayIn, Replayed]("job_replay", look, t.replay),
		runs[jobIn, Undone]("job_undo", tool.Hints{}, t.undo),
	}
}

type jobTools struct {
	queue   JobQueue
	scripts JobScripts
	runner  JobRunner
}

// load finds a stored script and its source.
func (t jobTools) load(ctx context.Context, hash string) (cas.Ref, string, error) {
	return loadScript(ctx, t.scripts, hash)
}

func loadScript(ctx context.Context, scripts JobScripts, hash string) (cas.Ref, string, error) {
	ref, err := scripts.Resolve(ctx, strings.TrimSpace(hash))
	if err != nil {
		return cas.Ref{}, "", err
	}
	source, err := scripts.Read(ctx, ref, script.MaxSource)
	return ref, string(source), err
}

func orEmpty(o Object) JSON {
	if len(o) == 0 {
		return JSON("{}")
	}
	return JSON(o)
}

// scriptFault converts a script's failure to a fault.
func scriptFault(err error) error {
	if failed, ok := err.(*script.Error); ok { //nolint:errorlint // what the runner returns is it, not around it
		return failed.Fault()
	}
	return err
}

type jobIn struct {
	JobID string `json:"job_id" jsonschema:"id of a job, from lua_execute" min:"1" max:"64"`
}

func (t jobTools) status(ctx context.Context, _ tool.Call, in jobIn) (tool.Result, error) {
	j, err := t.queue.Status(ctx, in.JobID)
	if err != nil {
		return tool.Result{}, err
	}
	d := fullView(&j)
	return tool.Output(d.text(mostJobText), d)
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

func (t jobTools) poll(ctx context.Context, call tool.Call, in jobPollIn) (tool.Result, error) {
	all := in.Mode == "all"
	left := time.Duration(in.TimeoutMS) * time.Millisecond
	report := newPollReport(call.Caller, in.JobIDs)
	defer report.watch(ctx, t.queue)()
	for {
		slice := min(left, progressInterval)
		left -= slice
		done, pending, err := t.queue.Poll(ctx, in.JobIDs, slice, all)
		if err != nil {
			return tool.Result{}, err
		}
		over := len(pending) == 0 || !all && len(done) > 0
		if over || left <= 0 {
			return polled(done, pending, !over)
		}
		report.waiting(done, pending)
	}
}

func polled(done []job.Job, pending []string, timedOut bool) (tool.Result, error) {
	full := []jobData{}
	for i := range done {
		full = append(full, fullView(&done[i]))
	}
	pending = append([]string{}, pending...)
	return tool.Output(pollText(full, pending, timedOut), map[string]any{"completed": full, "pending": pending, "timed_out": timedOut})
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
