package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/client/doctor"
)

// doctorCommand is `luanette doctor`.
type doctorCommand struct {
	settingFlags
	tokenFlag
	Server  string        `short:"s" placeholder:"URL" help:"Ask the running server at this URL how it is; nothing here is examined."`
	JSON    bool          `help:"Print JSON."`
	Timeout time.Duration `default:"30s" help:"How long each upstream may take to connect."`
}

// Help is shown by `luanette doctor --help`.
func (doctorCommand) Help() string {
	return `Checks the configuration, the data folder, the database, keys, the server's address
and certificate, public_url, identity providers, the clock, every upstream, every
client in which luanette is installed, and the programs that tool servers need. Each line says ok, or what is
wrong and what to do. A server that runs on the data folder is asked for the state
of its upstreams; otherwise the command connects to each of them once. With --server
it asks a server anywhere whether it is ready, and for its keys and upstreams. Root
examines the data folder of a service through its server.

The exit code is 1 if there is a problem.`
}

// Run prints the findings as they come.
func (c *doctorCommand) Run(ctx context.Context, proc *process) error {
	var all []doctor.Finding
	problems, warnings := 0, 0
	report := func(f doctor.Finding) {
		switch f.State {
		case doctor.Problem:
			problems++
		case doctor.Warning:
			warnings++
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
	default:
		fmt.Fprintf(proc.Stdout, "\n%s\n", summary(problems, warnings))
	}
	if problems > 0 {
		return exitStatus(exitFailure)
	}
	return nil
}

// summary says how many findings need something to be done.
func summary(problems, warnings int) string {
	text := "no problems"
	if problems > 0 {
		text = amount(problems, "problem")
	}
	if warnings > 0 {
		text += ", " + amount(warnings, "warning")
	}
	return text
}

func (c *doctorCommand) examine(ctx context.Context, proc *process, report func(doctor.Finding)) {
	options := doctor.Options{Env: proc.Env, Version: version, Timeout: c.Timeout, Server: c.Server}
	if c.Server != "" { // that needs no configuration
		options.Access = c.access(ctx, proc, &c.settingFlags, c.Server)
		doctor.Examine(ctx, options, report)
		return
	}
	loaded, err := c.loadQuietly(proc, nil)
	if err != nil {
		report(doctor.Unreadable(err))
		return
	}
	options.Config, options.Place = loaded, placeOf(loaded, proc.Env)
	doctor.Examine(ctx, options, report)
}

// printFinding prints one line, and what to do on the next.
func printFinding(proc *process, f doctor.Finding) {
	state := fmt.Sprintf("%-7s", f.State)
	fmt.Fprintf(proc.Stdout, "%s  %-22s %s\n", proc.style(proc.Stdout).state(state), f.Check, plainText(f.Text))
	if f.Fix != "" {
		fmt.Fprintf(proc.Stdout, "%9s%-22s %s\n", "", "  what to do:", plainText(f.Fix))
	}
}

// supportCommand is `luanette support`.
type supportCommand struct {
	settingFlags
	serverFlag
	tokenFlag
	Output  string        `short:"o" type:"path" placeholder:"FILE" help:"File to write (default luanette-support.zip)."`
	Profile time.Duration `default:"5s" help:"How long the server's processor time is measured; 0 does not measure it."`
	Timeout time.Duration `default:"10s" help:"How long each upstream may take to connect, if no server runs."`
}

// Help is shown by `luanette support --help`.
func (supportCommand) Help() string {
	return `Writes one ZIP archive for a bug report: the configuration, versions, the findings of
luanette doctor and, of a running server, the states of its upstreams, the last events,
goroutines and profiles. The server must be asked with a key of the scope admin, if it
has keys. What cannot be collected is listed in problems.txt.

Secrets are removed: values of the configuration and the environment that may be
secret, and what looks like a key. Look at the archive before you publish it; it has
the names of your tools, upstreams and folders.`
}

// Run writes the archive.
func (c *supportCommand) Run(ctx context.Context, proc *process) error {
	loaded, err := c.load(proc, nil)
	if err != nil {
		return err
	}
	address := c.Server
	if address == "" {
		address = addressOf(ctx, proc, loaded)
	}
	s := client.Support{
		Config: loaded, Env: proc.Env, Version: version, Address: address, Access: c.access(ctx, proc, &c.settingFlags, address), CPU: c.Profile,
		Files: map[string]string{"doctor.txt": c.findings(ctx, proc)},
	}
	var archive bytes.Buffer
	problems, err := s.Write(ctx, &archive)
	if err != nil {
		return err
	}
	name := c.Output
	if name == "" {
		name = "luanette-support.zip"
	}
	if err := os.WriteFile(name, archive.Bytes(), 0o600); err != nil {
		return fault.Wrap(fault.InvalidParams, err, "write archive")
	}
	for _, problem := range problems {
		fmt.Fprintf(proc.Stderr, "not included: %s\n", problem)
	}
	_, err = fmt.Fprintf(proc.Stdout, "wrote %s; look at it before you publish it\n", name)
	return errors.Join(err, context.Cause(ctx))
}

// findings are those of luanette doctor, as text.
func (c *supportCommand) findings(ctx context.Context, proc *process) string {
	var text bytes.Buffer
	quiet := &process{Stdout: &text, Stderr: proc.Stderr, Env: proc.Env, noColor: true}
	(&doctorCommand{settingFlags: c.settingFlags, Timeout: c.Timeout}).examine(ctx, proc, func(f doctor.Finding) { printFinding(quiet, f) })
	return text.String()
}
