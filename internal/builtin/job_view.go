package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/scripting/host"
)

// JobView is a job as the tools show it, without the script's result.
// Times are seconds since 1970.
type JobView struct {
	JobID       string       `json:"job_id"`
	Status      string       `json:"status" enum:"pending,running,waiting,complete,failed,cancelled"`
	Name        string       `json:"name,omitempty"`
	ScriptHash  string       `json:"script_hash,omitempty"`
	Creator     string       `json:"creator,omitempty"`
	By          string       `json:"by,omitempty" jsonschema:"client or key of the owner that started it"`
	Tags        []string     `json:"tags"`
	Priority    int          `json:"priority,omitempty"`
	ScheduleID  string       `json:"schedule_id,omitempty" jsonschema:"of the schedule that started it"`
	CreatedAt   float64      `json:"created_at" jsonschema:"seconds since 1970"`
	DueAt       float64      `json:"due_at,omitempty" jsonschema:"earliest start, if delayed"`
	StartedAt   float64      `json:"started_at,omitempty"`
	CompletedAt float64      `json:"completed_at,omitempty"`
	Progress    float64      `json:"progress" jsonschema:"0 to 1"`
	Message     string       `json:"message,omitempty" jsonschema:"last progress message"`
	Error       *JobError    `json:"error,omitempty" jsonschema:"why it failed"`
	TraceID     string       `json:"trace_id,omitempty" jsonschema:"of its latest run; for trace_get"`
	Output      []JobLogLine `json:"output,omitempty" jsonschema:"what it printed and logged"`
	Shared
}

// Shared is how a thing of somebody else is seen.
type Shared struct {
	Owner string          `json:"owner,omitempty" jsonschema:"name of the owner, if it is somebody else's"`
	Level principal.Level `json:"shared,omitempty" jsonschema:"what the owner permits: see, use or edit"`
}

func sharedView(s job.Sharing) Shared { return Shared{s.Owner, s.Level} }

// JobError is why a job failed.
type JobError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Line    int    `json:"line,omitempty" jsonschema:"of the script"`
	Column  int    `json:"column,omitempty"`
}

// text returns the message and the hint.
func (e *JobError) text() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + "\nHint: " + e.Hint
}

// JobLogLine is one line of a job's output.
type JobLogLine struct {
	Stream string  `json:"stream" jsonschema:"stdout, stderr or log"`
	Level  string  `json:"level,omitempty"`
	Text   string  `json:"text"`
	Time   float64 `json:"time" jsonschema:"seconds since 1970"`
}

// jobData is a view with the result and the argument of main.
type jobData struct {
	JobView
	Params JSON `json:"params,omitempty"`
	Result JSON `json:"result,omitempty"`
}

func fullView(j *job.Job) jobData { return jobData{jobView(j), JSON(j.Params), j.Result} }

func jobView(j *job.Job) JobView {
	v := JobView{
		JobID: j.ID, Status: string(j.State), Name: j.Name, ScriptHash: j.Hash, Creator: j.Creator, By: j.By, Tags: append([]string{}, j.Tags...),
		Priority: j.Priority, ScheduleID: j.Schedule, TraceID: j.TraceID,
		CreatedAt: seconds(j.Created), StartedAt: seconds(j.Started), CompletedAt: seconds(j.Finished),
		Progress: j.Progress, Message: j.Message, Error: jobError(j.Error), Output: logLines(j.Output), Shared: sharedView(j.Sharing),
	}
	if j.Due.After(j.Created) {
		v.DueAt = seconds(j.Due)
	}
	return v
}

func jobError(f *job.Failure) *JobError {
	if f == nil {
		return nil
	}
	return scriptError(f.Code, f.Message, f.Hint, f.Details)
}

// scriptError adds the place in the script that the details of a fault name.
func scriptError(code fault.Code, message, hint string, details JSON) *JobError {
	e := JobError{Code: string(code), Message: message, Hint: hint}
	var at struct{ Line, Column int }
	if json.Unmarshal(details, &at) == nil {
		e.Line, e.Column = at.Line, at.Column
	}
	return &e
}

func logLines(lines []host.OutputLine) []JobLogLine {
	var views []JobLogLine
	for _, line := range lines {
		views = append(views, JobLogLine{line.Stream, line.Level, line.Text, seconds(line.Time)})
	}
	return views
}

// seconds returns seconds since 1970, to the millisecond; 0 for no time.
func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

type jobListIn struct {
	Status     string `json:"status,omitempty" jsonschema:"its status" enum:"pending,running,waiting,complete,failed,cancelled"`
	Tag        string `json:"tag,omitempty" jsonschema:"one of its tags"`
	Creator    string `json:"creator,omitempty" jsonschema:"who started it"`
	Script     string `json:"script,omitempty" jsonschema:"name or hash"`
	Since      int64  `json:"since,omitempty" jsonschema:"seconds since 1970"`
	ScheduleID string `json:"schedule_id,omitempty" jsonschema:"the schedule that started it"`
	Limit      int    `json:"limit,omitempty" jsonschema:"maximum number; default 100" min:"1" max:"1000"`
	Cursor     string `json:"cursor,omitempty" jsonschema:"next_cursor of the previous page"`
}

// JobList is the result of job_list.
type JobList struct {
	Jobs       []JobView `json:"jobs"`
	Total      int       `json:"total" jsonschema:"of all pages"`
	NextCursor string    `json:"next_cursor,omitempty" jsonschema:"for the next page; missing on the last"`
}

// Text returns one line per entry.
func (l JobList) Text() string {
	lines := []string{fmt.Sprintf("Found %s (showing %d)", count(l.Total, "job"), len(l.Jobs))}
	for _, v := range l.Jobs {
		lines = append(lines, v.Text())
	}
	if l.NextCursor != "" {
		lines = append(lines, "Next page: cursor = "+l.NextCursor)
	}
	return strings.Join(lines, "\n")
}

func (in jobListIn) filter() job.Filter {
	f := job.Filter{State: job.State(in.Status), Tag: in.Tag, Creator: in.Creator, Schedule: in.ScheduleID, Script: in.Script}
	if in.Since > 0 {
		f.Since = time.Unix(in.Since, 0)
	}
	return f
}

func (t jobTools) list(ctx context.Context, _ tool.Call, in jobListIn) (tool.Result, error) {
	page, err := t.queue.List(ctx, in.filter(), in.Limit, in.Cursor)
	if err != nil {
		return tool.Result{}, err
	}
	l := JobList{Jobs: []JobView{}, Total: page.Total, NextCursor: page.Next}
	for i := range page.Jobs {
		l.Jobs = append(l.Jobs, jobView(&page.Jobs[i]))
	}
	return tool.Output(l.Text(), l)
}

type noArguments struct{}

// JobCounts is the result of job_stats.
type JobCounts struct {
	Total     int `json:"total"`
	Pending   int `json:"pending"`
	Running   int `json:"running"`
	Waiting   int `json:"waiting" jsonschema:"waiting for approval"`
	Complete  int `json:"complete"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`
}

// Text returns it as one line.
func (c JobCounts) Text() string {
	return fmt.Sprintf("%s: %d pending, %d running, %d waiting, %d complete, %d failed, %d cancelled", count(c.Total, "job"), c.Pending, c.Running, c.Waiting, c.Complete, c.Failed, c.Cancelled)
}

func (t jobTools) stats(ctx context.Context, _ tool.Call, _ noArguments) (JobCounts, error) {
	s, err := t.queue.Stats(ctx)
	c := JobCounts{Pending: s[job.Pending], Running: s[job.Running], Waiting: s[job.Waiting], Complete: s[job.Complete], Failed: s[job.Failed], Cancelled: s[job.Cancelled]}
	c.Total = c.Pending + c.Running + c.Waiting + c.Complete + c.Failed + c.Cancelled
	return c, err
}

type jobLogsIn struct {
	JobID string `json:"job_id" jsonschema:"id of a job" min:"1" max:"64"`
	From  int    `json:"from,omitempty" jsonschema:"number of the first line; 0 is the oldest available" min:"0"`
}

// JobLogs is the result of job_logs.
type JobLogs struct {
	Lines []JobLogLine `json:"lines"`
	Next  int          `json:"next" jsonschema:"pass it as from to read the following lines"`
}

// Text returns the lines.
func (l JobLogs) Text() string {
	if len(l.Lines) == 0 {
		return "(no output)"
	}
	var text []string
	for _, line := range l.Lines {
		text = append(text, line.Text)
	}
	return strings.Join(text, "\n")
}

func (t jobTools) logs(ctx context.Context, _ tool.Call, in jobLogsIn) (JobLogs, error) {
	lines, err := t.queue.Logs(ctx, in.JobID, in.From)
	return JobLogs{append([]JobLogLine{}, logLines(lines)...), in.From + len(lines)}, err
}

// JobResources makes the resources that show jobs.
func JobResources(q JobQueue) []Resource {
	const mime = "application/json"
	t := jobTools{queue: q}
	return []Resource{
		{URI: "lua://jobs", Name: "jobs", Title: "All jobs", MIMEType: mime, Description: "The newest 100 jobs with their status",
			Read: func(ctx context.Context, _ string) (string, error) {
				page, err := q.List(ctx, job.Filter{}, 100, "")
				if err != nil {
					return "", err
				}
				views := []JobView{}
				for i := range page.Jobs {
					views = append(views, jobView(&page.Jobs[i]))
				}
				return asJSON(JobList{views, page.Total, page.Next})
			}},
		{URI: "lua://jobs/stats", Name: "job-stats", Title: "Job counts", MIMEType: mime, Description: "How many jobs there are in each status",
			Read: func(ctx context.Context, _ string) (string, error) {
				counts, err := t.stats(ctx, tool.Call{}, noArguments{})
				if err != nil {
					return "", err
				}
				return asJSON(counts)
			}},
		{URI: "lua://jobs/{id}", Name: "job", Title: "A job", MIMEType: mime, Description: "One job with its result and output",
			Read: func(ctx context.Context, id string) (string, error) {
				j, err := q.Status(ctx, id)
				if err != nil {
					return "", err
				}
				return asJSON(fullView(&j))
			}},
	}
}

// JobCompletions completes ids and states of jobs.
func JobCompletions(q JobQueue) Completions {
	active := func(ctx context.Context) (ids []string) {
		for _, s := range job.States() {
			if s.Final() {
				continue
			}
			page, _ := q.List(ctx, job.Filter{State: s}, mostCompletions, "") // without them nothing is suggested
			for i := range page.Jobs {
				ids = append(ids, page.Jobs[i].ID)
			}
		}
		slices.Sort(ids)
		return ids
	}
	states := func(context.Context) []string {
		var names []string
		for _, s := range job.States() {
			names = append(names, string(s))
		}
		return names
	}
	return Completions{"job_id": active, "job_ids": active, "id": active, "status": states}
}
