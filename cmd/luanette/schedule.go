package main

import (
	"context"

	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/core/tool"
)

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
	ID string `arg:"" complete:"schedule" help:"The schedule's id, or the beginning of it."`
}

func (c *scheduleArg) change(ctx context.Context, proc *process, name string) error {
	var view tool.View
	err := c.withClient(ctx, proc, func(api client.Client) error {
		id, err := scheduleID(ctx, proc, api, c.ID)
		if err != nil {
			return err
		}
		view, err = callTool(ctx, proc, api, name, map[string]any{"schedule_id": id})
		return err
	})
	if err != nil {
		return err
	}
	return (&clientFlags{JSON: c.JSON}).print(proc, view)
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
