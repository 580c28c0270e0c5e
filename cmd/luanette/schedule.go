package main

import "context"

// scheduleCommand is `luanette job schedule`.
type scheduleCommand struct {
	List   scheduleListCommand   `cmd:"" help:"List schedules with their next run."`
	Pause  schedulePauseCommand  `cmd:"" help:"Stop a schedule from starting jobs."`
	Resume scheduleResumeCommand `cmd:"" help:"Let a paused schedule go on."`
	Remove scheduleRemoveCommand `cmd:"" help:"Remove a schedule; its jobs stay."`
}

type scheduleListCommand struct{ jobFlags }

// Run lists schedules.
func (c *scheduleListCommand) Run(ctx context.Context, world *process) error {
	return c.answer(ctx, world, "schedule_list", nil)
}

type scheduleArg struct {
	jobFlags
	ID string `arg:"" help:"The schedule's id."`
}

func (c *scheduleArg) change(ctx context.Context, world *process, name string) error {
	return c.answer(ctx, world, name, map[string]any{"schedule_id": c.ID})
}

type schedulePauseCommand struct{ scheduleArg }

// Run pauses the schedule.
func (c *schedulePauseCommand) Run(ctx context.Context, world *process) error {
	return c.change(ctx, world, "schedule_pause")
}

type scheduleResumeCommand struct{ scheduleArg }

// Run lets it go on.
func (c *scheduleResumeCommand) Run(ctx context.Context, world *process) error {
	return c.change(ctx, world, "schedule_resume")
}

type scheduleRemoveCommand struct{ scheduleArg }

// Run removes it.
func (c *scheduleRemoveCommand) Run(ctx context.Context, world *process) error {
	return c.change(ctx, world, "schedule_remove")
}
