package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/jobs/job"
)

// jobRunCommand is `luanette job run`.
type jobRunCommand struct {
	jobFlags
	scriptArg
}

// Help is shown by `luanette job run --help`.
func (jobRunCommand) Help() string {
	return `Starts the job and follows it: its output and progress go to standard error, its
result comes last, on standard output, as JSON. The exit code is 1 if the job fails.
Ctrl-C asks whether to cancel the job; otherwise it continues on the server.

  luanette job run report.lua -p name=Ada
  luanette job run report -p name=Ada`
}

// Run starts the job and follows it.
func (c *jobRunCommand) Run(ctx context.Context, proc *process) error {
	c.Notes = scriptNotes("", c.Param)
	return c.withClient(context.WithoutCancel(ctx), proc, func(api client.Client) error {
		args, err := c.args(ctx, proc, api)
		if err != nil {
			return err
		}
		view, err := callTool(context.WithoutCancel(ctx), proc, api, "lua_execute", args)
		if err != nil {
			return err
		}
		var started builtin.Execution
		if err := json.Unmarshal(view.Structured, &started); err != nil {
			return fault.Wrap(fault.Upstream, err, "read result of lua_execute")
		}
		fmt.Fprintf(proc.Stderr, "job %s started\n", shortID(started.JobID))
		return c.follow(ctx, proc, api, started.JobID)
	})
}

// jobFollowCommand is `luanette job follow`.
type jobFollowCommand struct{ jobArg }

// Help is shown by `luanette job follow --help`.
func (jobFollowCommand) Help() string {
	return `Prints what the job has written so far and what it writes until its end to standard
error, then its result to standard output. The exit code is 1 if the job fails.`
}

// Run follows the job.
func (c *jobFollowCommand) Run(ctx context.Context, proc *process) error {
	return c.withClient(context.WithoutCancel(ctx), proc, func(api client.Client) error {
		id, err := jobID(ctx, proc, api, c.ID)
		if err != nil {
			return err
		}
		return c.follow(ctx, proc, api, id)
	})
}

// shortID returns the beginning of an id, which is enough to name a job.
func shortID(id string) string { return id[:min(8, len(id))] }

// follow follows a job until its end and prints its result. If ctx ends before, it asks
// what to do with the job.
func (f *jobFlags) follow(ctx context.Context, proc *process, api client.Client, id string) error {
	follower := jobFollower{proc: proc, api: api, id: id, flags: f, live: newLive(proc)}
	job, err := follower.untilEnd(ctx)
	follower.live.end()
	switch {
	case err != nil && ctx.Err() != nil:
		return follower.interrupted(context.WithoutCancel(ctx))
	case err != nil:
		return err
	case f.JSON:
		if err := printJSON(proc.Stdout, job.raw); err != nil {
			return err
		}
	default:
		if err := job.printEnd(proc); err != nil {
			return err
		}
	}
	return job.exit()
}

// jobFollower shows a job while it runs.
type jobFollower struct {
	proc  *process
	api   client.Client
	id    string
	flags *jobFlags
	live  *live

	next     int    // number of the first line that was not shown yet
	reported string // the last progress that was shown on a pipe
	asked    bool   // whether the wait for approval was shown
}

// followedJob is a job and the server's own text about it.
type followedJob struct {
	jobInfo
	raw json.RawMessage
}

// pollTime is how long the server waits for the end of a job, in milliseconds. Output and
// progress are shown in between.
const pollTime = 500

// untilEnd shows the job's output and progress until it has ended.
func (f *jobFollower) untilEnd(ctx context.Context) (followedJob, error) {
	for {
		if _, err := f.call(ctx, "job_poll", map[string]any{"job_ids": []string{f.id}, "timeout_ms": pollTime}); err != nil {
			return followedJob{}, err
		}
		view, err := f.call(ctx, "job_status", map[string]any{"job_id": f.id})
		if err != nil {
			return followedJob{}, err
		}
		current := followedJob{raw: view.Structured}
		if err := json.Unmarshal(view.Structured, &current.jobInfo); err != nil {
			return followedJob{}, fault.Wrap(fault.Upstream, err, "read job")
		}
		if err := f.showOutput(ctx); err != nil {
			return followedJob{}, err
		}
		if current.ended() {
			return current, nil
		}
		f.showProgress(&current.jobInfo)
	}
}

func (f *jobFollower) call(ctx context.Context, name string, args map[string]any) (tool.View, error) {
	view, err := f.api.Call(ctx, name, args, nil)
	if err == nil && view.IsError {
		err = fault.New(fault.Upstream, "%s", view.Text())
	}
	return view, err
}

// showOutput prints the lines that the job wrote since the last time.
func (f *jobFollower) showOutput(ctx context.Context) error {
	view, err := f.call(ctx, "job_logs", map[string]any{"job_id": f.id, "from": f.next})
	if err != nil {
		return err
	}
	var logs builtin.JobLogs
	if err := json.Unmarshal(view.Structured, &logs); err != nil {
		return fault.Wrap(fault.Upstream, err, "read output of the job")
	}
	f.next = logs.Next
	for _, line := range logs.Lines {
		f.print(line.Text)
	}
	return nil
}

func (f *jobFollower) print(line string) {
	f.proc.status.print(f.proc.Stderr, func() { fmt.Fprintln(f.proc.Stderr, plainText(line)) })
}

// showProgress shows a bar on a terminal, and a line for each change elsewhere.
func (f *jobFollower) showProgress(j *jobInfo) {
	if j.Status == string(job.Waiting) && !f.asked {
		f.asked = true
		f.print("the job waits for approval; decide with `" + f.flags.command("approval list") + "`")
	}
	if j.Progress == 0 && j.Message == "" {
		return
	}
	if terminalWidth(f.proc.Stderr) > 0 {
		f.live.progress(tool.Progress{Progress: j.Progress, Total: 1, Message: j.Message})
		return
	}
	if text := strings.TrimSpace(fmt.Sprintf("%.0f %% %s", j.Progress*100, j.Message)); text != f.reported {
		f.reported = text
		f.print(text)
	}
}

// interrupted asks a person whether the job should end too. Without a person the job
// continues.
func (f *jobFollower) interrupted(ctx context.Context) error {
	short := shortID(f.id)
	if isTerminal(f.proc.Stdin) && isTerminal(f.proc.Stderr) {
		fmt.Fprintf(f.proc.Stderr, "\ncancel job %s? [y]es, or Enter to leave it running: ", short)
		answer, _ := bufio.NewReader(f.proc.Stdin).ReadString('\n')
		if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
			view, err := f.call(ctx, "job_cancel", map[string]any{"job_id": f.id})
			if err != nil {
				return err
			}
			fmt.Fprintln(f.proc.Stderr, view.Text())
			return exitStatus(exitInterrupted)
		}
	}
	fmt.Fprintf(f.proc.Stderr, "job %s continues; follow it with `%s`, stop it with `%s`\n",
		short, f.flags.command("job follow "+short), f.flags.command("job cancel "+short))
	return exitStatus(exitInterrupted)
}

// command returns a command line for the same server.
func (f *jobFlags) command(words string) string {
	line := "luanette " + words
	if f.Config != "" {
		line += " --config " + f.Config
	}
	if f.Server != "" {
		line += " --server " + f.Server
	}
	return line
}

// printEnd prints how the job ended: the result to standard output, everything else to
// standard error.
func (j *followedJob) printEnd(proc *process) error {
	style := proc.style(proc.Stderr)
	fmt.Fprintf(proc.Stderr, "job %s %s after %s\n", shortID(j.JobID), style.state(j.Status), j.duration(timeOf(j.CompletedAt)))
	if j.Error != nil {
		fmt.Fprintf(proc.Stderr, "%s %s\n", style.bad("error:"), plainText(j.Error.Message))
		if j.Error.Hint != "" {
			fmt.Fprintf(proc.Stderr, "  %s\n", plainText(j.Error.Hint))
		}
	}
	if len(j.Result) == 0 || string(j.Result) == "null" {
		return nil
	}
	return printJSON(proc.Stdout, j.Result)
}

// exit returns the exit status of a command that followed the job.
func (j *followedJob) exit() error {
	if j.Status == string(job.Complete) {
		return nil
	}
	return exitStatus(exitFailure)
}
