package main

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

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
	return `A live dashboard of a running server: its servers, tools, approvals, jobs, calls,
traces and log. Keys are those of k9s: 1 to 9 and :servers, :jobs, … show a list,
/ filters it, Enter opens a row, Esc goes back, Shift and a letter sort. a and d
decide approvals, r reconnects a server, l shows what it writes to standard error,
t its traces, s opens the REPL. ? shows all keys; the mouse works, too.

It needs only the server's address, so it works from other machines and over SSH.
It waits for a server that is unreachable. NO_COLOR=1 disables colours.`
}

// Run shows the dashboard until the person quits.
func (c *hudCommand) Run(ctx context.Context, proc *process) error {
	address, err := c.serverFlag.address(proc, &c.settingFlags)
	if err != nil {
		return err
	}
	access := c.access(ctx, proc, &c.settingFlags, address)
	o := dashboard.Options{
		Server: address, Key: access.Key, CAFile: access.CAFile, Version: version,
		Input: proc.Stdin, Output: proc.Stdout,
	}
	if c.Once || c.JSON || terminalWidth(proc.Stdout) == 0 || !isTerminal(proc.Stdin) {
		return dashboard.Once(ctx, o, terminalWidth(proc.Stdout), c.JSON)
	}
	o.Env = screenEnvironment(proc)
	ctx, shell, stop := c.shell(ctx, proc, address)
	defer stop()
	o.Shell = shell
	return dashboard.Run(ctx, o)
}

// screenEnvironment is what the dashboard must know about the terminal.
func screenEnvironment(proc *process) (env []string) {
	for _, name := range []string{"TERM", "COLORTERM", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TMUX", "STY", "SSH_TTY", "TERM_PROGRAM", "WT_SESSION"} {
		if value, ok := proc.Env.Lookup(name); ok {
			env = append(env, name+"="+value)
		}
	}
	if proc.noColor {
		env = append(env, "NO_COLOR=1")
	}
	return env
}

// shell returns a function that runs the REPL of the server, and a context for the
// dashboard. An interrupt ends the dashboard, but while the REPL runs it only stops what
// was typed there.
func (c *hudCommand) shell(ctx context.Context, proc *process, address string) (context.Context, func(context.Context) error, func()) {
	var busy atomic.Bool
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { // ends with stop
		for s := range signals {
			if s != os.Interrupt || !busy.Load() {
				cancel()
				signal.Stop(signals) // a second signal ends the process at once
			}
		}
	}()
	run := func(ctx context.Context) error {
		busy.Store(true)
		defer busy.Store(false)
		repl := replCommand{clientFlags: clientFlags{settingFlags: c.settingFlags, Server: address, tokenFlag: c.tokenFlag, Wait: shellWait}}
		return repl.Run(ctx, proc)
	}
	return ctx, run, func() {
		signal.Stop(signals)
		close(signals)
		cancel()
	}
}

// shellWait is how long the REPL waits for the server.
const shellWait = 30 * time.Second
