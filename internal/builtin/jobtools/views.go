package jobtools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/plural"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/builtin/scripttools"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/tools/toolset"
)

// JobView is a job as the tools show it. Times are seconds since 1970.
type JobView struct {
	JobID       string               `json:"job_id"`
	Status      string               `json:"status" enum:"pending,running,waiting,complete,failed,cancelled"`
	Name        string               `json:"name,omitempty"`
	ScriptHash  string               `json:"script_hash,omitempty"`
	Creator     string               `json:"creator,omitempty"`
	By          string               `json:"by,omitempty" jsonschema:"client or key of the owner that started it"`
	Tags        []string             `json:"tags"`
	Priority    int                  `json:"priority,omitempty"`
	ScheduleID  string               `json:"schedule_id,omitempty" jsonschema:"of the schedule that started it"`
	CreatedAt   float64              `json:"created_at" jsonschema:"seconds since 1970"`
	DueAt       float64              `json:"due_at,omitempty" jsonschema:"earliest start, if delayed"`
	StartedAt   float64              `json:"started_at,omitempty"`
	CompletedAt float64              `json:"completed_at,omitempty"`
	Progress    float64              `json:"progress" jsonschema:"0 to 1"`
	Message     string               `json:"message,omitempty" jsonschema:"last progress message"`
	Error       *builtin.ScriptError `json:"error,omitempty" jsonschema:"why it failed"`
	TraceID     string               `json:"trace_id,omitempty" jsonschema:"of its latest run; for trace_get"`
	Output      []builtin.LogLine    `json:"output,omitempty" jsonschema:"what it printed and logged"`
	builtin.Shared
	Params toolset.JSON `json:"params,omitempty" schema:"-"` // the argument of main; not in lists, like the result
	Result toolset.JSON `json:"result,omitempty" schema:"-"`
}

func sharedView(s job.Sharing) builtin.Shared { return builtin.Shared{Owner: s.Owner, Level: s.Level} }

// fullView adds the argument of main and the result.
func fullView(j *job.Job) JobView {
	v := jobView(j)
	v.Params, v.Result = toolset.JSON(j.Params), j.Result
	return v
}

func jobView(j *job.Job) JobView {
	v := JobView{
		JobID: j.ID, Status: string(j.State), Name: j.Name, ScriptHash: j.Hash, Creator: j.Creator, By: j.By, Tags: append([]string{}, j.Tags...),
		Priority: j.Priority, ScheduleID: j.Schedule, TraceID: j.TraceID,
		CreatedAt: builtin.Seconds(j.Created), StartedAt: builtin.Seconds(j.Started), CompletedAt: builtin.Seconds(j.Finished),
		Progress: j.Progress, Message: j.Message, Error: jobError(j.Error), Output: builtin.LogLines(j.Output), Shared: sharedView(j.Sharing),
	}
	if j.Due.After(j.Created) {
		v.DueAt = builtin.Seconds(j.Due)
	}
	return v
}

func jobError(f *job.Failure) *builtin.ScriptError {
	if f == nil {
		return nil
	}
	return builtin.NewScriptError(f.Code, f.Message, f.Hint, f.Details)
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
	lines := []string{fmt.Sprintf("Found %s (showing %d)", plural.Count(l.Total, "job"), len(l.Jobs))}
	for _, v := range l.Jobs {
		lines = append(lines, v.summary())
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

func (t jobTools) list(ctx context.Context, _ tool.Call, in jobListIn) (JobList, error) {
	page, err := t.queue.List(ctx, in.filter(), in.Limit, in.Cursor)
	l := JobList{Jobs: []JobView{}, Total: page.Total, NextCursor: page.Next}
	for i := range page.Jobs {
		l.Jobs = append(l.Jobs, jobView(&page.Jobs[i]))
	}
	return l, err
}

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
	return fmt.Sprintf("%s: %d pending, %d running, %d waiting, %d complete, %d failed, %d cancelled", plural.Count(c.Total, "job"), c.Pending, c.Running, c.Waiting, c.Complete, c.Failed, c.Cancelled)
}

func (t jobTools) stats(ctx context.Context, _ tool.Call, _ struct{}) (JobCounts, error) {
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
	Lines []builtin.LogLine `json:"lines"`
	Next  int               `json:"next" jsonschema:"pass it as from to read the following lines"`
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
	return JobLogs{append([]builtin.LogLine{}, builtin.LogLines(lines)...), in.From + len(lines)}, err
}

// Resources makes the resources that show jobs.
func Resources(q *job.Queue) []builtin.Resource {
	const mime = "application/json"
	t := jobTools{queue: q}
	return []builtin.Resource{
		{URI: "lua://jobs", Name: "jobs", Title: "All jobs", MIMEType: mime, Description: "The newest 100 jobs with their status",
			Read: func(ctx context.Context, _ string) (string, error) {
				return builtin.AsJSON(t.list(ctx, tool.Call{}, jobListIn{Limit: 100}))
			}},
		{URI: "lua://jobs/stats", Name: "job-stats", Title: "Job counts", MIMEType: mime, Description: "How many jobs there are in each status",
			Read: func(ctx context.Context, _ string) (string, error) {
				return builtin.AsJSON(t.stats(ctx, tool.Call{}, struct{}{}))
			}},
		{URI: "lua://jobs/{id}", Name: "job", Title: "A job", MIMEType: mime, Description: "One job with its result and output",
			Read: func(ctx context.Context, id string) (string, error) {
				return builtin.AsJSON(t.status(ctx, tool.Call{}, jobIn{JobID: id}))
			}},
	}
}

// Completions completes ids and states of jobs.
func Completions(q *job.Queue) builtin.Completions {
	active := func(ctx context.Context) (ids []string) {
		for _, s := range job.States() {
			if s.Final() {
				continue
			}
			page, _ := q.List(ctx, job.Filter{State: s}, builtin.MostCompletions, "") // without them nothing is suggested
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
	return builtin.Completions{"job_id": active, "job_ids": active, "id": active, "status": states}
}

type jobJournalIn struct {
	JobID string `json:"job_id" jsonschema:"id of a job" min:"1" max:"64"`
	From  int    `json:"from,omitempty" jsonschema:"number of steps to skip" min:"0"`
	Limit int    `json:"limit,omitempty" jsonschema:"maximum number of steps; default 200" min:"1" max:"1000"`
}

// Journaled is the result of job_journal.
type Journaled struct {
	Steps []StepView `json:"steps"`
	Total int        `json:"total" jsonschema:"of the whole journal"`

	from int // number of steps before these
}

// StepView is a step of a journal.
type StepView struct {
	Step   int64   `json:"step" jsonschema:"number of the effect in the script's order"`
	Effect string  `json:"effect" jsonschema:"such as mcp.call or fs.write"`
	Kind   string  `json:"kind" enum:"read,repeat,write,moment"`
	Call   string  `json:"call" jsonschema:"as written in a script, shortened"`
	Time   float64 `json:"time" jsonschema:"end, or start if not done; seconds since 1970"`
	Done   bool    `json:"done" jsonschema:"false if its outcome is unknown"`
	Error  string  `json:"error,omitempty" jsonschema:"its error"`

	Outcome []host.Value `json:"outcome,omitempty" schema:"-"`
}

func stepView(s host.Step) StepView {
	v := StepView{Step: s.Seq, Effect: host.ShownName(s.Name), Kind: s.Kind.String(), Call: s.Call(), Time: builtin.Seconds(s.At), Done: s.Done, Outcome: s.Values}
	if s.Err != nil {
		v.Error = s.Err.Error()
	}
	return v
}

func (t jobTools) journal(ctx context.Context, _ tool.Call, in jobJournalIn) (Journaled, error) {
	steps, err := t.queue.Journal(ctx, in.JobID)
	if err != nil {
		return Journaled{}, err
	}
	in.Limit = cmp.Or(in.Limit, 200)
	journal := Journaled{Steps: []StepView{}, Total: len(steps), from: min(in.From, len(steps))}
	for _, step := range steps[journal.from:min(in.From+in.Limit, len(steps))] {
		journal.Steps = append(journal.Steps, stepView(step))
	}
	return journal, nil
}

type jobReplayIn struct {
	JobID      string `json:"job_id" jsonschema:"id of a finished job" min:"1" max:"64"`
	Code       string `json:"code,omitempty" jsonschema:"another script to run with the same answers" max:"1048576"`
	Language   string `json:"language,omitempty" jsonschema:"of code; default: that of the job's script" enum:"lua,javascript"`
	ScriptHash string `json:"script_hash,omitempty" jsonschema:"hash of another stored script"`
}

// Replayed is the result of job_replay.
type Replayed struct {
	Steps    int                  `json:"steps" jsonschema:"in the journal"`
	Unused   int                  `json:"unused" jsonschema:"steps that the script did not ask for"`
	Diverged bool                 `json:"diverged" jsonschema:"true if the script's effects differ from the journal"`
	Error    *builtin.ScriptError `json:"error,omitempty" jsonschema:"why it failed, or where it differs"`
	Output   []builtin.LogLine    `json:"output" jsonschema:"what it printed and logged"`
	Result   toolset.JSON         `json:"result,omitempty" schema:"-"`
}

// Text returns a summary, the result and the output.
func (r Replayed) Text() string {
	var text string
	switch {
	case r.Diverged:
		text = "Replay differs from the journal: " + r.Error.Text()
	case r.Error != nil:
		text = "The script failed: " + r.Error.Text()
	default:
		text = fmt.Sprintf("Replay complete: %s answered from the journal, %d unused", plural.Count(r.Steps-r.Unused, "step"), r.Unused)
	}
	if len(r.Result) > 0 {
		text += "\nResult: " + shortened(script.Pretty(r.Result), mostJobText)
	}
	if len(r.Output) > 0 {
		text += "\nOutput:\n  " + shortened(outputText(r.Output), mostJobText)
	}
	return text
}

func (t jobTools) replay(ctx context.Context, _ tool.Call, in jobReplayIn) (Replayed, error) {
	other, err := t.otherScript(ctx, in)
	if err != nil {
		return Replayed{}, err
	}
	r, err := t.queue.Replay(ctx, in.JobID, other)
	return Replayed{
		Steps: r.Steps, Unused: r.Left, Diverged: r.Diverged, Error: jobError(r.Error),
		Output: append([]builtin.LogLine{}, builtin.LogLines(r.Output)...), Result: r.Result,
	}, err
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
		ref, source, err := scripttools.Load(ctx, t.scripts, in.ScriptHash)
		return job.Script{Source: source, Hash: ref.String()}, err
	default:
		return job.Script{}, nil
	}
}

// Many clients show a model only the text of a result, so the texts of jobs have what the
// data has, as far as it is short enough to be read. These limits are in bytes.
const (
	mostJobText     = 16 << 10 // of all jobs of one result
	leastJobText    = 512      // of each of them
	mostOutcomeText = 160      // of one step of a journal
	mostJournalText = 32 << 10
)

// summary returns one line, and another with the error.
func (v JobView) summary() string {
	text := v.line()
	if problem := v.Problem(); problem != "" {
		text += "\n  " + problem
	}
	return text
}

// Problem returns why the job failed, as one line.
func (v JobView) Problem() string {
	if v.Error == nil {
		return ""
	}
	message := v.Error.Message
	if _, cause, ok := strings.Cut(message, "\nError: "); ok { // below a heading
		message = cause
	}
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	return line
}

// line returns a job in one line.
func (v JobView) line() string {
	text := fmt.Sprintf("Job %s: %s", v.JobID, v.Status)
	if v.StartedAt > 0 && v.CompletedAt > v.StartedAt {
		text += fmt.Sprintf(" after %v", time.Duration((v.CompletedAt-v.StartedAt)*1000)*time.Millisecond)
	}
	if about := v.about(); len(about) > 0 {
		text += " (" + strings.Join(about, ", ") + ")"
	}
	if v.Status == string(job.Pending) && v.DueAt > 0 {
		text += ", due " + builtin.TimeText(v.DueAt)
	}
	if v.Status == string(job.Running) && v.Progress > 0 {
		text += fmt.Sprintf(", %.0f %% %s", v.Progress*100, v.Message)
	}
	return text
}

// about says what runs, and whose it is.
func (v JobView) about() (about []string) {
	if v.Name != "" {
		about = append(about, v.Name)
	}
	if v.ScriptHash != "" {
		about = append(about, "script: "+v.ScriptHash[:min(12, len(v.ScriptHash))])
	}
	if v.By != "" {
		about = append(about, "by "+v.By)
	}
	if v.Owner != "" {
		about = append(about, "of "+v.Owner)
	}
	return about
}

// Text returns the job with its result or error and its output.
func (v JobView) Text() string { return v.text(mostJobText) }

// text is Text in about limit bytes.
func (v JobView) text(limit int) string {
	text := v.line()
	if v.Error != nil {
		text += "\nError: " + shortened(v.Error.Text(), limit/2)
	}
	if len(v.Result) > 0 {
		text += "\nResult: " + shortened(script.Pretty(v.Result), limit/2)
	}
	if len(v.Output) > 0 {
		text += "\nOutput:\n  " + shortened(outputText(v.Output), limit/4)
	}
	return text
}

func outputText(lines []builtin.LogLine) string {
	texts := make([]string, len(lines))
	for i, line := range lines {
		texts[i] = line.Text
	}
	return strings.Join(texts, "\n  ")
}

// shortened returns the beginning of a text, and how long it is.
func shortened(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return fmt.Sprintf("%s (%d bytes in all)", redact.Cut(text, limit), len(text))
}

// Text returns the ended jobs in full, and the ids of the others.
func (p JobPoll) Text() string {
	var b strings.Builder
	if p.TimedOut {
		fmt.Fprintf(&b, "Poll timed out. %d completed, %d still pending.", len(p.Completed), len(p.Pending))
	} else {
		fmt.Fprintf(&b, "Poll complete. %s finished.", plural.Count(len(p.Completed), "job"))
	}
	limit := max(leastJobText, mostJobText/max(1, len(p.Completed)))
	for i, v := range p.Completed {
		if b.Len() > 2*mostJobText {
			fmt.Fprintf(&b, "\n… and %d more: job_status shows each.", len(p.Completed)-i)
			break
		}
		b.WriteString("\n" + v.text(limit))
	}
	if len(p.Pending) > 0 {
		b.WriteString("\nPending: " + shortened(strings.Join(p.Pending, ", "), mostJobText/4))
	}
	return b.String()
}

// Text returns one line for each step, with the beginning of its outcome.
func (j Journaled) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (showing %d)", plural.Count(j.Total, "step"), len(j.Steps))
	next := j.from
	for _, step := range j.Steps {
		if b.Len() > mostJournalText {
			break
		}
		b.WriteString("\n" + step.text())
		next++
	}
	if left := j.Total - next; left > 0 {
		fmt.Fprintf(&b, "\n… and %d more: pass from = %d.", left, next)
	}
	return b.String()
}

func (v StepView) text() string {
	text := fmt.Sprintf("%4d  %s", v.Step, v.Call)
	switch {
	case !v.Done:
		text += "  … in progress, or it is unknown whether it happened"
	case v.Error != "":
		text += "  ! " + v.Error
	}
	if len(v.Outcome) == 0 {
		return text
	}
	raw, err := json.Marshal(v.Outcome)
	if err != nil {
		return text
	}
	return text + "  = " + shortened(string(raw[1:len(raw)-1]), mostOutcomeText) // without the brackets of the list
}
