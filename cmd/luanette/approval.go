package main

import (
	"context"
)

// approvalCommand is `luanette approval`: what scripts may do only after a person
// said yes.
type approvalCommand struct {
	List   approvalListCommand   `cmd:"" help:"List what waits for approval, and what is remembered."`
	Show   approvalShowCommand   `cmd:"" help:"Show an approval: its plan, and what became of the script."`
	Allow  approvalAllowCommand  `cmd:"" help:"Let a script go on and do what its plan shows."`
	Deny   approvalDenyCommand   `cmd:"" help:"Let a script go on without what it asks for."`
	Forget approvalForgetCommand `cmd:"" help:"Take a remembered answer back."`
}

// Help is shown by `luanette approval --help`.
func (approvalCommand) Help() string {
	return `With approve = "writes" in luanette.toml, for everything or for some tools, a
script that reaches a call which changes something pauses there. It waits, also
over a restart, until somebody decides here, in the web HUD, or in the MCP client
that called it.`
}

type approvalListCommand struct {
	clientFlags
	Status string `help:"pending, allowed, denied, withdrawn or any." default:"pending"`
}

// Run lists approvals, newest first.
func (c *approvalListCommand) Run(ctx context.Context, world *process) error {
	return c.answer(ctx, world, "approval_list", map[string]any{"status": c.Status})
}

type approvalArg struct {
	clientFlags
	ID string `arg:"" help:"The approval's id, as list shows it."`
}

type approvalShowCommand struct{ approvalArg }

// Run shows the approval.
func (c *approvalShowCommand) Run(ctx context.Context, world *process) error {
	return c.answer(ctx, world, "approval_status", map[string]any{"id": c.ID})
}

type decideArg struct {
	approvalArg
	Remember string `placeholder:"SCOPE" enum:",tool,namespace,script" default:"" help:"Let the answer hold from now on: for this tool, its namespace, or this script."`
}

func (c *decideArg) decide(ctx context.Context, world *process, decision string) error {
	args := map[string]any{"id": c.ID, "decision": decision}
	if c.Remember != "" {
		args["remember"] = c.Remember
	}
	return c.answer(ctx, world, "approval_decide", args)
}

type approvalAllowCommand struct{ decideArg }

// Run says yes. A script that is no job goes on at once, and what became of it is
// shown.
func (c *approvalAllowCommand) Run(ctx context.Context, world *process) error {
	return c.decide(ctx, world, "allow")
}

type approvalDenyCommand struct{ decideArg }

// Run says no.
func (c *approvalDenyCommand) Run(ctx context.Context, world *process) error {
	return c.decide(ctx, world, "deny")
}

type approvalForgetCommand struct{ approvalArg }

// Run takes a remembered answer back.
func (c *approvalForgetCommand) Run(ctx context.Context, world *process) error {
	return c.answer(ctx, world, "approval_forget", map[string]any{"id": c.ID})
}
