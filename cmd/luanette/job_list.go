package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/jobs/job"
)

type jobListCommand struct {
	jobFlags
	Status   string `enum:",pending,running,waiting,complete,failed,cancelled" default:"" placeholder:"STATE" help:"Only those pending, running, waiting, complete, failed or cancelled."`
	Tag      string `short:"t" help:"Only those with this tag."`
	Creator  string `help:"Only those of this creator."`
	Schedule string `placeholder:"ID" complete:"schedule" help:"Only those that this schedule started."`
	Limit    int    `default:"20" help:"Maximum number of results."`
}

// Run lists jobs, newest first.
func (c *jobListCommand) Run(ctx context.Context, proc *process) error {
	args := map[string]any{"limit": c.Limit}
	for key, value := range map[string]string{"status": c.Status, "tag": c.Tag, "creator": c.Creator} {
		if value != "" {
			args[key] = value
		}
	}
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
	var list builtin.JobList
	if err := json.Unmarshal(view.Structured, &list); err != nil {
		return fault.Wrap(fault.Upstream, err, "read list of jobs")
	}
	return printJobs(proc, &list)
}

func printJobs(proc *process, list *builtin.JobList) error {
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
			durationText(now.Sub(timeOf(j.CreatedAt))), j.duration(now), j.progress(now), j.problem(),
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
type jobInfo struct{ builtin.JobView }

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
		return "needs approval"
	case j.Status == string(job.Pending) && j.DueAt > 0:
		return "starts in " + durationText(timeOf(j.DueAt).Sub(now))
	case j.Progress == 0 && j.Message == "" || j.Status == string(job.Complete):
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%.0f %% %s", j.Progress*100, j.Message))
}

// problem returns why the job failed, as one line.
func (j *jobInfo) problem() string {
	if j.Error == nil {
		return ""
	}
	message := j.Error.Message
	if _, cause, ok := strings.Cut(message, "\nError: "); ok { // below a heading
		message = cause
	}
	return firstLine(message)
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
