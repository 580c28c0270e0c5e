package main

import (
	"context"

	dashboard "github.com/luanette/luanette/internal/ui/terminal"
)

// hudCommand is `luanette hud`.
type hudCommand struct {
	settingFlags
	serverFlag
	tokenFlag
	Once bool `help:"Print the current state and exit. This is the default if standard output is not a terminal."`
	JSON bool `help:"Print the current state as JSON."`
}

// Help is shown by `luanette hud --help`.
func (hudCommand) Help() string {
	return `A live dashboard of a running server: its upstreams, jobs, calls and log, with
keys to retry or remove an upstream and to cancel a job. ? shows all keys.

It needs only the server's address, so it works from other machines and over SSH.
It waits for a server that is unreachable. NO_COLOR=1 disables colours.`
}

// Run shows the dashboard until the person quits.
func (c *hudCommand) Run(ctx context.Context, proc *process) error {
	address, err := c.serverFlag.address(proc, &c.settingFlags)
	if err != nil {
		return err
	}
	access := c.access(proc, &c.settingFlags, address)
	o := dashboard.Options{
		Server: address, Key: access.Key, CAFile: access.CAFile, Version: version,
		Input: proc.Stdin, Output: proc.Stdout,
	}
	if c.Once || c.JSON || terminalWidth(proc.Stdout) == 0 || !isTerminal(proc.Stdin) {
		return dashboard.Once(ctx, o, terminalWidth(proc.Stdout), c.JSON)
	}
	for _, name := range []string{"TERM", "COLORTERM", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TMUX", "STY", "SSH_TTY", "TERM_PROGRAM", "WT_SESSION"} {
		if value, ok := proc.Env.Lookup(name); ok {
			o.Env = append(o.Env, name+"="+value)
		}
	}
	return dashboard.Run(ctx, o)
}
