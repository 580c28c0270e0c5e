package main

import (
	"context"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// jobCommand is `luanette job`. Jobs run in a server, so each subcommand connects to
// one.
type jobCommand struct {
	Start  jobStartCommand  `cmd:"" help:"Run a stored script as a job; prints its id."`
	List   jobListCommand   `cmd:"" help:"List jobs."`
	Status jobStatusCommand `cmd:"" help:"Show a job."`
	Poll   jobPollCommand   `cmd:"" help:"Wait for jobs to finish."`
	Cancel jobCancelCommand `cmd:"" help:"Stop a job."`
	Logs   jobLogsCommand   `cmd:"" help:"Show what a job printed and logged."`

	Journal  jobJournalCommand `cmd:"" help:"Show the effects of a job, step by step."`
	Stats    jobStatsCommand   `cmd:"" help:"Count jobs by status."`
	Schedule scheduleCommand   `cmd:"" help:"List, pause and remove schedules; job start --schedule creates one."`
}

// jobFlags are the flags of every job command.
type jobFlags struct {
	settingFlags
	serverFlag
	tokenFlag
	JSON bool `help:"Print JSON."`

	Notes map[string]any `kong:"-"` // added to the _meta of its calls
}

// api returns the flags of a client of the server that runs the jobs.
func (f *jobFlags) api(proc *process) (*clientFlags, error) {
	address, err := f.address(proc, &f.settingFlags)
	return &clientFlags{Server: address, tokenFlag: f.tokenFlag, JSON: f.JSON, Notes: f.Notes}, err
}

func (f *jobFlags) callAndPrint(ctx context.Context, proc *process, name string, args map[string]any) error {
	api, err := f.api(proc)
	if err != nil {
		return err
	}
	return api.callAndPrint(ctx, proc, name, args)
}

type jobStartCommand struct {
	jobFlags
	Hash     string        `arg:"" help:"The script's hash, or the first 12 digits or more."`
	Param    []string      `short:"p" placeholder:"KEY=VALUE" help:"A parameter for main(params); KEY:=JSON passes JSON unchanged."`
	Creator  string        `help:"Creator of the job; jobs of different creators take turns."`
	Tag      []string      `short:"t" help:"Tags to find it by."`
	Priority int           `help:"Priority among the creator's jobs; higher runs first."`
	Delay    time.Duration `placeholder:"10m" help:"Delay before it starts."`
	At       string        `placeholder:"TIME" help:"When it starts, such as 2026-12-24T18:00:00Z."`
	Schedule string        `placeholder:"CRON" help:"Start it repeatedly, such as '0 7 * * 1-5' or '@every 10m'."`
	Timezone string        `placeholder:"ZONE" help:"Time zone of the schedule, such as Europe/Berlin."`
}

// Help is shown by `luanette job start --help`.
func (jobStartCommand) Help() string {
	return `If the output is not a terminal, only the id of the job or schedule is printed:

  JOB=$(luanette job start $HASH -p name=Ada)`
}

// Run starts the job.
func (c *jobStartCommand) Run(ctx context.Context, proc *process) error {
	params, err := readParams(c.Param)
	if err != nil {
		return err
	}
	c.Notes = scriptNotes("", c.Param)
	args := map[string]any{"script_hash": c.Hash, "params": params}
	for key, value := range map[string]string{"creator": c.Creator, "start_at": c.At, "schedule": c.Schedule, "timezone": c.Timezone} {
		if value != "" {
			args[key] = value
		}
	}
	if len(c.Tag) > 0 {
		args["tags"] = c.Tag
	}
	if c.Priority != 0 {
		args["priority"] = c.Priority
	}
	if c.Delay != 0 {
		args["delay_ms"] = c.Delay.Milliseconds()
	}
	api, err := c.api(proc)
	if err != nil {
		return err
	}
	return api.callAndPrintID(ctx, proc, "lua_execute", args, "job_id", "schedule_id")
}

type jobListCommand struct {
	jobFlags
	Status   string `help:"Only those pending, running, complete, failed or cancelled."`
	Tag      string `short:"t" help:"Only those with this tag."`
	Creator  string `help:"Only those of this creator."`
	Schedule string `placeholder:"ID" help:"Only those that this schedule started."`
	Limit    int    `default:"20" help:"Maximum number of results."`
}

// Run lists jobs, newest first.
func (c *jobListCommand) Run(ctx context.Context, proc *process) error {
	args := map[string]any{"limit": c.Limit}
	for key, value := range map[string]string{"status": c.Status, "tag": c.Tag, "creator": c.Creator, "schedule_id": c.Schedule} {
		if value != "" {
			args[key] = value
		}
	}
	return c.callAndPrint(ctx, proc, "job_list", args)
}

type jobArg struct {
	jobFlags
	ID string `arg:"" help:"The job's id."`
}

type jobStatusCommand struct{ jobArg }

// Run shows the job.
func (c *jobStatusCommand) Run(ctx context.Context, proc *process) error {
	return c.callAndPrint(ctx, proc, "job_status", map[string]any{"job_id": c.ID})
}

type jobPollCommand struct {
	jobFlags
	IDs     []string `arg:"" help:"The jobs' ids."`
	Timeout int      `default:"60000" placeholder:"MS" help:"How long to wait, in milliseconds."`
	Any     bool     `help:"Return when the first job has finished."`
}

// Run waits.
func (c *jobPollCommand) Run(ctx context.Context, proc *process) error {
	if len(c.IDs) == 0 {
		return fault.New(fault.InvalidParams, "no job to wait for")
	}
	mode := "all"
	if c.Any {
		mode = "any"
	}
	return c.callAndPrint(ctx, proc, "job_poll", map[string]any{"job_ids": c.IDs, "timeout_ms": c.Timeout, "mode": mode})
}

type jobCancelCommand struct{ jobArg }

// Run stops the job.
func (c *jobCancelCommand) Run(ctx context.Context, proc *process) error {
	return c.callAndPrint(ctx, proc, "job_cancel", map[string]any{"job_id": c.ID})
}

type jobLogsCommand struct{ jobArg }

// Run shows the job's output.
func (c *jobLogsCommand) Run(ctx context.Context, proc *process) error {
	return c.callAndPrint(ctx, proc, "job_logs", map[string]any{"job_id": c.ID})
}

type jobJournalCommand struct{ jobArg }

// Run shows the job's journal.
func (c *jobJournalCommand) Run(ctx context.Context, proc *process) error {
	return c.callAndPrint(ctx, proc, "job_journal", map[string]any{"job_id": c.ID})
}

type jobStatsCommand struct{ jobFlags }

// Run counts jobs.
func (c *jobStatsCommand) Run(ctx context.Context, proc *process) error {
	return c.callAndPrint(ctx, proc, "job_stats", nil)
}
