package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/core/tool"
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
	Cancel jobCancelCommand `cmd:"" help:"Stop a job."`
	Undo   jobUndoCommand   `cmd:"" help:"Undo what a job changed, where its tools declare how; shows the plan and asks."`
	Logs   jobLogsCommand   `cmd:"" help:"Show what a job printed and logged."`

	Journal  jobJournalCommand `cmd:"" help:"Show the effects of a job, step by step."`
	Stats    jobStatsCommand   `cmd:"" help:"Count jobs by state."`
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
	return &clientFlags{settingFlags: f.settingFlags, Server: address, tokenFlag: f.tokenFlag, JSON: f.JSON, Notes: f.Notes}, err
}

// withClient connects to the server, passes the client to do and closes it.
func (f *jobFlags) withClient(ctx context.Context, proc *process, do func(client.Client) error) error {
	flags, err := f.api(proc)
	if err != nil {
		return err
	}
	return flags.withClient(ctx, proc, do)
}

func (f *jobFlags) callAndPrint(ctx context.Context, proc *process, name string, args map[string]any) error {
	api, err := f.api(proc)
	if err != nil {
		return err
	}
	return api.callAndPrint(ctx, proc, name, args)
}

// scriptArg is a script to run as a job, with its parameters.
type scriptArg struct {
	Script  string   `arg:"" name:"file | name | hash" complete:"script" help:"A file, which is stored first; - reads standard input. Or a stored script: its name, or the beginning of its hash."`
	Param   []string `short:"p" sep:"none" placeholder:"KEY=VALUE" help:"A parameter for main(params); KEY:=JSON passes JSON unchanged."`
	Creator string   `help:"Creator of the job; jobs of different creators take turns."`
	Tag     []string `short:"t" help:"Tags to find it by."`

	Priority int `help:"Priority among the creator's jobs; higher runs first."`
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
	jobFlags
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
	c.Notes = scriptNotes("", c.Param)
	flags, err := c.api(proc)
	if err != nil {
		return err
	}
	var view tool.View
	err = flags.withClient(ctx, proc, func(api client.Client) error {
		args, err := c.args(ctx, proc, api)
		if err != nil {
			return err
		}
		for key, value := range map[string]string{"start_at": c.At, "schedule": c.Schedule, "timezone": c.Timezone} {
			if value != "" {
				args[key] = value
			}
		}
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
	jobFlags
	ID string `arg:"" complete:"job" help:"The job's id, or the beginning of it."`
}

// call calls a tool about the job.
func (c *jobArg) call(ctx context.Context, proc *process, name string) (view tool.View, err error) {
	err = c.withClient(ctx, proc, func(api client.Client) error {
		if c.ID, err = jobID(ctx, proc, api, c.ID); err != nil {
			return err
		}
		view, err = callTool(ctx, proc, api, name, map[string]any{"job_id": c.ID})
		return err
	})
	return view, err
}

func (c *jobArg) callAndPrint(ctx context.Context, proc *process, name string) error {
	view, err := c.call(ctx, proc, name)
	if err != nil {
		return err
	}
	return (&clientFlags{JSON: c.JSON}).print(proc, view)
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
	jobFlags
	IDs     []string `arg:"" complete:"job" help:"The jobs' ids, or the beginnings of them."`
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
	return (&clientFlags{JSON: c.JSON}).print(proc, view)
}

type jobCancelCommand struct{ jobArg }

// Run stops the job.
func (c *jobCancelCommand) Run(ctx context.Context, proc *process) error {
	return c.callAndPrint(ctx, proc, "job_cancel")
}

type jobUndoCommand struct{ jobArg }

// Run asks and undoes.
func (c *jobUndoCommand) Run(ctx context.Context, proc *process) error {
	return c.callAndPrint(ctx, proc, "job_undo")
}

type jobLogsCommand struct{ jobArg }

// Run shows the job's output.
func (c *jobLogsCommand) Run(ctx context.Context, proc *process) error {
	return c.callAndPrint(ctx, proc, "job_logs")
}

type jobJournalCommand struct{ jobArg }

// Run shows the job's journal.
func (c *jobJournalCommand) Run(ctx context.Context, proc *process) error {
	return c.callAndPrint(ctx, proc, "job_journal")
}

type jobStatsCommand struct{ jobFlags }

// Run counts jobs.
func (c *jobStatsCommand) Run(ctx context.Context, proc *process) error {
	return c.callAndPrint(ctx, proc, "job_stats", nil)
}
