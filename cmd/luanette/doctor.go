package main

import (
	"context"
	"fmt"
	"time"

	"github.com/luanette/luanette/internal/client/doctor"
)

// doctorCommand is `luanette doctor`.
type doctorCommand struct {
	settingFlags
	JSON    bool          `help:"Print JSON."`
	Timeout time.Duration `default:"30s" help:"How long each upstream may take to connect."`
}

// Help is shown by `luanette doctor --help`.
func (doctorCommand) Help() string {
	return `Checks the configuration, the data folder, the database, keys, the server's address
and certificate, the clock, every upstream, every client in which luanette is
installed, and the programs that tool servers need. Each line says ok, or what is
wrong and what to do. A server that runs on the data folder is asked for the state
of its upstreams; otherwise the command connects to each of them once.

The exit code is 1 if there is a problem.`
}

// Run prints the findings as they come.
func (c *doctorCommand) Run(ctx context.Context, proc *process) error {
	var all []doctor.Finding
	problems := 0
	report := func(f doctor.Finding) {
		if f.State == doctor.Problem {
			problems++
		}
		if all = append(all, f); !c.JSON {
			printFinding(proc, f)
		}
	}
	c.examine(ctx, proc, report)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case c.JSON:
		if err := printValue(proc, map[string]any{"findings": all, "problems": problems}); err != nil {
			return err
		}
	case problems == 0:
		fmt.Fprintln(proc.Stdout, "\nno problems")
	default:
		fmt.Fprintf(proc.Stdout, "\n%s\n", amount(problems, "problem"))
	}
	if problems > 0 {
		return exitStatus(exitFailure)
	}
	return nil
}

func (c *doctorCommand) examine(ctx context.Context, proc *process, report func(doctor.Finding)) {
	loaded, err := c.loadQuietly(proc, nil)
	if err != nil {
		report(doctor.Unreadable(err))
		return
	}
	doctor.Examine(ctx, doctor.Options{
		Config: loaded, Env: proc.Env, Version: version, Place: placeOf(loaded, proc.Env), Timeout: c.Timeout,
	}, report)
}

// printFinding prints one line, and what to do on the next.
func printFinding(proc *process, f doctor.Finding) {
	state := fmt.Sprintf("%-7s", f.State)
	fmt.Fprintf(proc.Stdout, "%s  %-22s %s\n", proc.style(proc.Stdout).state(state), f.Check, plainText(f.Text))
	if f.Fix != "" {
		fmt.Fprintf(proc.Stdout, "%9s%-22s %s\n", "", "  what to do:", plainText(f.Fix))
	}
}
