package main

import (
	"context"
	"os"

	"golang.org/x/term"

	dashboard "github.com/luanette/luanette/internal/ui/terminal"
)

// hudCommand is `luanette hud`.
type hudCommand struct {
	settingFlags
	serverFlag
	tokenFlag
	Once bool `help:"Print a picture of now and leave. So does a terminal that is none."`
	JSON bool `help:"Print the picture as JSON."`
}

// Help is shown by `luanette hud --help`.
func (hudCommand) Help() string {
	return `A live dashboard of a running server: its upstreams, jobs, calls and log, with
keys to retry or remove an upstream and to cancel a job. ? shows all keys.

It needs nothing but the server's address, so that it works from elsewhere and
over SSH, and it waits for a server that is away. NO_COLOR=1 takes the colours
away.`
}

// Run watches until the person leaves.
func (c *hudCommand) Run(ctx context.Context, world *process) error {
	address, err := c.serverFlag.address(world, &c.settingFlags)
	if err != nil {
		return err
	}
	o := dashboard.Options{
		Server: address, Key: c.token(world), Version: version,
		Input: world.Stdin, Output: world.Stdout,
	}
	if c.Once || c.JSON || terminalWidth(world.Stdout) == 0 || !isTerminal(world.Stdin) {
		return dashboard.Once(ctx, o, terminalWidth(world.Stdout), c.JSON)
	}
	for _, name := range []string{"TERM", "COLORTERM", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TMUX", "STY", "SSH_TTY", "TERM_PROGRAM", "WT_SESSION"} {
		if value, ok := world.Env.Lookup(name); ok {
			o.Env = append(o.Env, name+"="+value)
		}
	}
	return dashboard.Run(ctx, o)
}

func isTerminal(from any) bool {
	file, ok := from.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
