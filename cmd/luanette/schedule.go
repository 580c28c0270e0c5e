package main

import "context"

// scheduleCommand is `luanette job schedule`.
type scheduleCommand struct {
	List   scheduleListCommand   `cmd:"" help:"List schedules with their next run."`
	Pause  schedulePauseCommand  `cmd:"" help:"Stop a schedule from starting jobs."`
	Resume scheduleResumeCommand `cmd:"" help:"Resume a paused schedule."`
	Remove scheduleRemoveCommand `cmd:"" help:"Remove a schedule; its jobs stay."`
}

type scheduleListCommand struct{ jobFlags }

// Run lists schedules.
func (c *scheduleListCommand) Run(ctx context.Context, proc *process) error {
	return c.callAndPrint(ctx, proc, "schedule_list", nil)
}

type scheduleArg struct {
	jobFlags
	ID string `arg:"" help:"The schedule's id."`
}

func (c *scheduleArg) change(ctx context.Context, proc *process, name string) error {
	return c.callAndPrint(ctx, proc, name, map[string]any{"schedule_id": c.ID})
}

type schedulePauseCommand struct{ scheduleArg }

// Run pauses the schedule.
func (c *schedulePauseCommand) Run(ctx context.Context, proc *process) error {
	return c.change(ctx, proc, "schedule_pause")
}

type scheduleResumeCommand struct{ scheduleArg }

// Run resumes the schedule.
func (c *scheduleResumeCommand) Run(ctx context.Context, proc *process) error {
	return c.change(ctx, proc, "schedule_resume")
}

type scheduleRemoveCommand struct{ scheduleArg }

// Run removes the schedule.
func (c *scheduleRemoveCommand) Run(ctx context.Context, proc *process) error {
	return c.change(ctx, proc, "schedule_remove")
}
