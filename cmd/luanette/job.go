package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/alecthomas/kong"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin/jobtools"
	"github.com/luanette/luanette/internal/builtin/scripttools"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/scripting/script"
)

// jobCommand is `luanette job`. Jobs run in a server, so each subcommand connects to
// one.
type jobCommand struct {
	Run    jobRunCommand    `cmd:"" help:"Run a script as a job, follow it and print its result."`
	Start  jobStartCommand  `cmd:"" help:"Start a script as a job, now, later or repeatedly; prints its id."`
	List   jobListCommand   `cmd:"" help:"List jobs."`
	Status jobStatusCommand `cmd:"" help:"Show a job: its state, result or error, and duration."`
	Follow jobFollowCommand `cmd:"" help:"Follow a job until its end and print its result."`
	Poll   jobPollCommand   `cmd:"" help:"Wait for jobs to finish."`
	Cancel jobArg           `cmd:"" tool:"job_cancel" help:"Stop a job."`
	Undo   jobArg           `cmd:"" tool:"job_undo" help:"Undo what a job changed: files, and calls whose tools declare how; shows the plan and asks."`
	Resume jobResumeCommand `cmd:"" help:"Continue a job that failed because it is unknown whether a call happened."`
	Logs   jobArg           `cmd:"" tool:"job_logs" help:"Show what a job printed and logged."`

	Journal  jobArg          `cmd:"" tool:"job_journal" help:"Show the effects of a job, step by step."`
	Stats    toolOfServer    `cmd:"" tool:"job_stats" help:"Count jobs by state."`
	Schedule scheduleCommand `cmd:"" help:"List, pause and remove schedules; job start --schedule creates one."`
}

// scriptArg is a script to run as a job, with its parameters.
type scriptArg struct {
	Script  string   `arg:"" name:"file | name | hash" complete:"script" help:"A file, which is stored first; - reads standard input. Or a stored script: its name, or the beginning of its hash."`
	Param   []string `short:"p" sep:"none" placeholder:"KEY=VALUE" help:"A parameter for main(params); KEY:=JSON passes JSON unchanged."`
	Creator string   `help:"Creator of the job; jobs of different creators take turns."`
	Tag     []string `short:"t" help:"Tags to find it by."`

	Priority int `help:"Priority among the creator's jobs; higher runs first."`
}

// notes are those of the script, which has the name of its file unless it has its own.
func (a *scriptArg) notes() map[string]any {
	file := ""
	if isFile(a.Script) {
		file = a.Script
	}
	notes := scriptNotes(file, a.Param)
	notes[scripttools.RunKey] = true
	return notes
}

// args stores the script if it is a file, and returns the arguments of lua_execute.
func (a *scriptArg) args(ctx context.Context, proc *process, api client.Client) (map[string]any, error) {
	params, err := readParams(a.Param)
	if err != nil {
		return nil, err
	}
	hash, err := scriptFor(ctx, proc, api, a.Script)
	if err != nil {
		return nil, err
	}
	args := map[string]any{"script_hash": hash, "params": params}
	if a.Creator != "" {
		args["creator"] = a.Creator
	}
	if len(a.Tag) > 0 {
		args["tags"] = a.Tag
	}
	if a.Priority != 0 {
		args["priority"] = a.Priority
	}
	return args, nil
}

type jobStartCommand struct {
	runningFlags
	scriptArg
	Delay    time.Duration `placeholder:"10m" help:"Delay before it starts."`
	At       string        `placeholder:"TIME" help:"When it starts, such as 2026-12-24T18:00:00Z."`
	Schedule string        `placeholder:"CRON" help:"Start it repeatedly, such as '0 7 * * 1-5' or '@every 10m'."`
	Timezone string        `placeholder:"ZONE" help:"Time zone of the schedule, such as Europe/Berlin."`
}

// Help is shown by `luanette job start --help`.
func (jobStartCommand) Help() string {
	return `If the output is not a terminal, only the id of the job or schedule is printed:

  JOB=$(luanette job start report.lua -p name=Ada)
  luanette job follow $JOB`
}

// Run starts the job.
func (c *jobStartCommand) Run(ctx context.Context, proc *process) error {
	c.Notes = c.notes()
	flags, err := c.api(ctx, proc)
	if err != nil {
		return err
	}
	var view tool.View
	err = flags.withClient(ctx, proc, func(api client.Client) error {
		args, err := c.args(ctx, proc, api)
		if err != nil {
			return err
		}
		setGiven(args, map[string]string{"start_at": c.At, "schedule": c.Schedule, "timezone": c.Timezone})
		if c.Delay != 0 {
			args["delay_ms"] = c.Delay.Milliseconds()
		}
		view, err = callTool(ctx, proc, api, "lua_execute", args)
		return err
	})
	if err != nil {
		return err
	}
	return flags.printID(proc, view, "job_id", "schedule_id")
}

// jobArg is a job of a server.
type jobArg struct {
	runningFlags
	ID string `arg:"" complete:"job" help:"The job's id, or the beginning of it."`
}

// call calls a tool about the job.
func (c *jobArg) call(ctx context.Context, proc *process, name string) (view tool.View, err error) {
	return c.callWith(ctx, proc, name, map[string]any{})
}

// callWith is call with more arguments.
func (c *jobArg) callWith(ctx context.Context, proc *process, name string, args map[string]any) (view tool.View, err error) {
	err = c.withClient(ctx, proc, func(api client.Client) error {
		if c.ID, err = jobID(ctx, proc, api, c.ID); err != nil {
			return err
		}
		args["job_id"] = c.ID
		view, err = callTool(ctx, proc, api, name, args)
		return err
	})
	return view, err
}

// Run calls the tool of the command.
func (c *jobArg) Run(ctx context.Context, proc *process, k *kong.Context) error {
	view, err := c.call(ctx, proc, toolOf(k))
	if err != nil {
		return err
	}
	return printView(proc, view, c.JSON)
}

type jobResumeCommand struct {
	jobArg
	Assume string `enum:",done,not-done" default:"" placeholder:"OUTCOME" help:"Whether the calls in doubt were carried out: done or not-done."`
	Result string `placeholder:"JSON" help:"With --assume done: what the script gets as the result of a tool call (default {})."`
}

// Help is shown by `luanette job resume --help`.
func (jobResumeCommand) Help() string {
	return `Without --assume it shows the calls in doubt. Check what they changed; then resume the
job with --assume done, or with --assume not-done, which makes the calls again. It
continues as a new job, which repeats nothing else. If the output is not a terminal,
only the id of that job is printed.`
}

// Run shows the calls in doubt, or resumes the job.
func (c *jobResumeCommand) Run(ctx context.Context, proc *process) error {
	args := map[string]any{}
	setGiven(args, map[string]string{"assume": strings.ReplaceAll(c.Assume, "-", "_"), "result": c.Result})
	view, err := c.callWith(ctx, proc, "job_resume", args)
	if err != nil {
		return err
	}
	if c.Assume == "" {
		return printView(proc, view, c.JSON)
	}
	flags, err := c.api(ctx, proc)
	if err != nil {
		return err
	}
	return flags.printID(proc, view, "new_job_id")
}

type jobStatusCommand struct{ jobArg }

// Run shows the job.
func (c *jobStatusCommand) Run(ctx context.Context, proc *process) error {
	view, err := c.call(ctx, proc, "job_status")
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(proc.Stdout, view.Structured)
	}
	var job jobInfo
	if err := json.Unmarshal(view.Structured, &job); err != nil {
		return fault.Wrap(fault.Upstream, err, "read job")
	}
	return job.print(proc)
}

type jobPollCommand struct {
	runningFlags
	IDs     []string `arg:"" name:"id" complete:"job" help:"The jobs' ids, or the beginnings of them."`
	Timeout int      `default:"60000" placeholder:"MS" help:"How long to wait, in milliseconds."`
	Any     bool     `help:"Return when the first job has finished."`
}

// Run waits.
func (c *jobPollCommand) Run(ctx context.Context, proc *process) error {
	args := map[string]any{"timeout_ms": c.Timeout, "mode": "all"}
	if c.Any {
		args["mode"] = "any"
	}
	var view tool.View
	err := c.withClient(ctx, proc, func(api client.Client) (err error) {
		ids := make([]string, len(c.IDs))
		for i, typed := range c.IDs {
			if ids[i], err = jobID(ctx, proc, api, typed); err != nil {
				return err
			}
		}
		args["job_ids"] = ids
		view, err = callTool(ctx, proc, api, "job_poll", args)
		return err
	})
	if err != nil {
		return err
	}
	return printView(proc, view, c.JSON)
}

type jobListCommand struct {
	runningFlags
	Status   string `enum:",pending,running,waiting,complete,failed,cancelled" default:"" placeholder:"STATE" help:"Only those pending, running, waiting, complete, failed or cancelled."`
	Tag      string `short:"t" help:"Only those with this tag."`
	Creator  string `help:"Only those of this creator."`
	Schedule string `placeholder:"ID" complete:"schedule" help:"Only those that this schedule started."`
	Limit    int    `default:"20" help:"Maximum number of results."`
}

// Run lists jobs, newest first.
func (c *jobListCommand) Run(ctx context.Context, proc *process) error {
	args := map[string]any{"limit": c.Limit}
	setGiven(args, map[string]string{"status": c.Status, "tag": c.Tag, "creator": c.Creator})
	var view tool.View
	err := c.withClient(ctx, proc, func(api client.Client) (err error) {
		if c.Schedule != "" {
			if args["schedule_id"], err = scheduleID(ctx, proc, api, c.Schedule); err != nil {
				return err
			}
		}
		view, err = callTool(ctx, proc, api, "job_list", args)
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(proc.Stdout, view.Structured)
	}
	var list jobtools.JobList
	if err := json.Unmarshal(view.Structured, &list); err != nil {
		return fault.Wrap(fault.Upstream, err, "read list of jobs")
	}
	return printJobs(proc, &list)
}

func printJobs(proc *process, list *jobtools.JobList) error {
	if len(list.Jobs) == 0 {
		fmt.Fprintln(proc.Stdout, "no jobs; `luanette job run FILE` runs a script as one")
		return nil
	}
	var ids []string
	for _, j := range list.Jobs {
		ids = append(ids, j.JobID)
	}
	length := uniqueLength(ids)
	now := time.Now()
	var rows [][]string
	for i := range list.Jobs {
		j := jobInfo{JobView: list.Jobs[i]}
		rows = append(rows, []string{
			j.JobID[:min(length, len(j.JobID))], cmp.Or(j.Name, shortHash(j.ScriptHash)), j.Status,
			durationText(now.Sub(timeOf(j.CreatedAt))), j.duration(now), j.progress(now), j.Problem(),
		})
	}
	if err := table(proc, strings.Fields("JOB NAME STATE AGE DURATION PROGRESS ERROR"), rows); err != nil {
		return err
	}
	if more := list.Total - len(list.Jobs); more > 0 {
		fmt.Fprintf(proc.Stderr, "%d more; --limit shows them\n", more)
	}
	return nil
}

// uniqueLength returns how much of the ids distinguishes them, at least 8 characters.
func uniqueLength(ids []string) int {
	for length := 8; length < uuidLength; length++ {
		seen := map[string]bool{}
		for _, id := range ids {
			seen[id[:min(length, len(id))]] = true
		}
		if len(seen) == len(ids) {
			return length
		}
	}
	return uuidLength
}

func shortHash(hash string) string { return hash[:min(12, len(hash))] }

// jobInfo is a job as the server shows it.
type jobInfo struct{ jobtools.JobView }

// ended reports whether the job has ended.
func (j *jobInfo) ended() bool { return job.State(j.Status).Final() }

// duration returns how long the job ran, or has run so far.
func (j *jobInfo) duration(now time.Time) string {
	switch {
	case j.StartedAt == 0:
		return ""
	case j.CompletedAt > 0:
		now = timeOf(j.CompletedAt)
	}
	return durationText(now.Sub(timeOf(j.StartedAt)))
}

// progress returns how far the job is, or what it waits for.
func (j *jobInfo) progress(now time.Time) string {
	switch {
	case j.Status == string(job.Waiting):
		return cmp.Or(j.waitsFor(), "needs approval")
	case j.Status == string(job.Pending) && j.DueAt > 0:
		return "starts in " + durationText(timeOf(j.DueAt).Sub(now))
	case j.Progress == 0 && j.Message == "" || j.Status == string(job.Complete):
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%.0f %% %s", j.Progress*100, j.Message))
}

// waitsFor returns what a waiting job waits for, if that is no approval.
func (j *jobInfo) waitsFor() string {
	if strings.HasPrefix(j.Message, "waits for ") {
		return firstLine(j.Message)
	}
	return ""
}

// print shows the job in full.
func (j *jobInfo) print(proc *process) error {
	now := time.Now()
	style := proc.style(proc.Stdout)
	fields := [][2]string{
		{"job", j.JobID},
		{"name", j.Name},
		{"script", shortHash(j.ScriptHash)},
		{"state", style.state(j.Status)},
		{"progress", j.progress(now)},
		{"created", whenText(j.CreatedAt, now)},
		{"started", whenText(j.StartedAt, now)},
		{"duration", j.duration(now)},
		{"creator", j.Creator},
		{"tags", strings.Join(j.Tags, ", ")},
		{"schedule", j.ScheduleID},
	}
	if j.StartedAt > 0 {
		fields = append(fields, [2]string{"trace", j.TraceID})
	}
	columns := tabwriter.NewWriter(proc.Stdout, 0, 0, columnGap, ' ', 0)
	for _, f := range fields {
		if f[1] != "" {
			fmt.Fprintf(columns, "%s\t%s\n", f[0], plainText(f[1]))
		}
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	return j.printOutcome(proc, style)
}

// printOutcome prints the error or the result.
func (j *jobInfo) printOutcome(proc *process, style style) error {
	if j.Error != nil {
		fmt.Fprintf(proc.Stdout, "\n%s %s\n", style.bad("error:"), plainText(j.Error.Message))
		if j.Error.Hint != "" {
			fmt.Fprintf(proc.Stdout, "  %s\n", plainText(j.Error.Hint))
		}
	}
	if len(j.Result) == 0 || string(j.Result) == "null" {
		return nil
	}
	fmt.Fprintln(proc.Stdout, "\nresult:")
	return printJSON(proc.Stdout, j.Result)
}

// timeOf returns the time of a tool's result, in seconds since 1970.
func timeOf(seconds float64) time.Time { return time.UnixMilli(int64(seconds * 1000)) }

// whenText returns a time and how long ago it was.
func whenText(seconds float64, now time.Time) string {
	if seconds == 0 {
		return ""
	}
	t := timeOf(seconds)
	return fmt.Sprintf("%s (%s ago)", t.Local().Format(time.DateTime), durationText(now.Sub(t)))
}

// durationText writes a duration for people: 12 ms, 4.2 s, 3 min, 5 h, 2 d.
func durationText(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d d", int(d.Hours()/24))
	}
}

// scheduleCommand is `luanette job schedule`.
type scheduleCommand struct {
	List   scheduleListCommand `cmd:"" help:"List schedules with their next run."`
	Pause  scheduleArg         `cmd:"" tool:"schedule_pause" help:"Stop a schedule from starting jobs."`
	Resume scheduleArg         `cmd:"" tool:"schedule_resume" help:"Resume a paused schedule."`
	Remove scheduleArg         `cmd:"" tool:"schedule_remove" help:"Remove a schedule; its jobs stay."`
}

type scheduleListCommand struct{ runningFlags }

// Run lists schedules.
func (c *scheduleListCommand) Run(ctx context.Context, proc *process) error {
	flags, err := c.api(ctx, proc)
	if err != nil {
		return err
	}
	return list(ctx, proc, flags, "schedule_list", struct{}{}, func(found jobtools.ScheduleList) error {
		ids := make([]string, len(found.Schedules))
		for i := range found.Schedules {
			ids[i] = found.Schedules[i].ScheduleID
		}
		length := uniqueLength(ids)
		none := "no schedules; `luanette job start FILE --schedule CRON` makes one"
		return printList(proc, found.Schedules, none, "SCHEDULE NAME STATE TIMES ZONE NEXT STARTED SKIPPED PARAMS", func(s jobtools.ScheduleView) []string {
			return []string{
				s.ScheduleID[:min(length, len(s.ScheduleID))], cmp.Or(s.Script(), shortHash(s.ScriptHash)), scheduleState(&s), s.Schedule, cmp.Or(s.Timezone, "-"),
				nextRun(&s), strconv.Itoa(s.Started), strconv.Itoa(s.Skipped), s.ShownParams(),
			}
		})
	})
}

// scheduleState says whether a schedule starts jobs, and why not.
func scheduleState(s *jobtools.ScheduleView) string {
	switch {
	case s.Reason != "":
		return "paused: " + s.Reason
	case s.Paused:
		return "paused"
	default:
		return "active"
	}
}

func nextRun(s *jobtools.ScheduleView) string {
	if s.NextRun == 0 {
		return "-"
	}
	return timeOf(s.NextRun).Local().Format(time.DateTime)
}

type scheduleArg struct {
	runningFlags
	ID string `arg:"" complete:"schedule" help:"The schedule's id, or the beginning of it."`
}

// Run calls the tool of the command.
func (c *scheduleArg) Run(ctx context.Context, proc *process, k *kong.Context) error {
	var view tool.View
	err := c.withClient(ctx, proc, func(api client.Client) error {
		id, err := scheduleID(ctx, proc, api, c.ID)
		if err != nil {
			return err
		}
		view, err = callTool(ctx, proc, api, toolOf(k), map[string]any{"schedule_id": id})
		return err
	})
	if err != nil {
		return err
	}
	return printView(proc, view, c.JSON)
}

// replayCommand is `luanette replay`.
type replayCommand struct {
	clientFlags
	ID     string `arg:"" name:"job" complete:"job" help:"The job's id, or the beginning of it."`
	Script string `placeholder:"FILE" complete:"file" help:"Another script to run with the recorded results; - reads it from standard input."`
}

// Help is shown by `luanette replay --help`.
func (replayCommand) Help() string {
	return `Runs a finished job again from its journal: every call of its script returns the
recorded result. No call is made, and no upstream is needed. The script's output
goes to the same streams as before; the result comes last, as JSON. With --script,
a changed script runs with the recorded results. If it makes a call that differs
from the recorded one, the step and both calls are shown, and the exit code is 1.`
}

// Run replays the job from the data folder, or on a running server.
func (c *replayCommand) Run(ctx context.Context, proc *process) error {
	args := map[string]any{}
	if c.Script != "" {
		source, err := readSource(proc, c.Script)
		if err != nil {
			return err
		}
		args["code"] = source
		if language := script.LanguageOf(c.Script); language != "" {
			args["language"] = language
		}
	}
	c.Archive = true
	var view tool.View
	err := c.withClient(ctx, proc, func(api client.Client) (err error) {
		if args["job_id"], err = jobID(ctx, proc, api, c.ID); err != nil {
			return err
		}
		view, err = callTool(ctx, proc, api, "job_replay", args)
		return err
	})
	if err != nil {
		return err
	}
	return c.report(proc, view.Structured)
}

// report prints the outcome of the replay.
func (c *replayCommand) report(proc *process, structured json.RawMessage) error {
	var replayed struct {
		Steps    int
		Unused   int
		Diverged bool
		Error    *struct{ Message, Hint string }
	}
	if err := json.Unmarshal(structured, &replayed); err != nil {
		return fault.Wrap(fault.Upstream, err, "read result")
	}
	if c.JSON {
		if err := printJSON(proc.Stdout, structured); err != nil {
			return err
		}
	} else if err := newLive(proc).printResult(structured); err != nil {
		return err
	}
	switch {
	case replayed.Error == nil:
		fmt.Fprintf(proc.Stderr, "%d of %d steps used their recorded results\n", replayed.Steps-replayed.Unused, replayed.Steps)
		return nil
	case replayed.Diverged:
		fmt.Fprintf(proc.Stderr, "differs from the journal: %s\n", replayed.Error.Message)
	default:
		fmt.Fprintln(proc.Stderr, replayed.Error.Message)
	}
	if replayed.Error.Hint != "" {
		fmt.Fprintf(proc.Stderr, "  %s\n", replayed.Error.Hint)
	}
	return exitStatus(exitFailure)
}
