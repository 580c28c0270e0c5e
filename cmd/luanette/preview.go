package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
)

// previewCommand is `luanette preview`.
type previewCommand struct {
	clientFlags
	languageFlag
	File  string   `arg:"" complete:"file" help:"The script; - reads it from standard input."`
	Param []string `short:"p" sep:"none" placeholder:"KEY=VALUE" help:"A parameter for main(params); KEY:=JSON passes JSON unchanged."`
	Mock  []string `sep:"none" placeholder:"TOOL:=JSON" help:"The result of a tool, such as github.create_issue:={\"number\":7}."`
	Full  bool     `help:"Show all arguments."`
}

// Help is shown by `luanette preview --help`.
func (previewCommand) Help() string {
	return `Runs the script without changing anything. Tools that are declared read-only are
called. Every other call, write and command is recorded; it returns the value of
--mock, or a generated value that fits the tool's schema. The recorded effects are
printed as a numbered plan.`
}

// Run shows the script's plan, made in this process or on a running server.
func (c *previewCommand) Run(ctx context.Context, proc *process) error {
	source, err := readSource(proc, c.File)
	if err != nil {
		return err
	}
	params, err := readParams(c.Param)
	if err != nil {
		return err
	}
	c.Notes = scriptNotes(c.File, c.Param)
	args := c.of(c.File, sourceArgs(source, params))
	if len(c.Mock) > 0 {
		if args["mocks"], err = readParams(c.Mock); err != nil {
			return err
		}
	}
	view, err := c.call(ctx, proc, "lua_preview", args)
	if err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(proc.Stdout, view.Structured)
	} else if _, err = fmt.Fprintln(proc.Stdout, view.Text()); err == nil && c.Full {
		err = printWhole(proc, view)
	}
	if err != nil {
		return err
	}
	var previewed struct{ Error *struct{ Message string } }
	if err := json.Unmarshal(view.Structured, &previewed); err != nil {
		return fault.Wrap(fault.Upstream, err, "read result")
	}
	if previewed.Error != nil {
		return exitStatus(exitFailure)
	}
	return nil
}

// printWhole prints the plan in a result with all arguments.
func printWhole(proc *process, view tool.View) error {
	var shown struct{ Plan []host.Planned }
	if err := json.Unmarshal(view.Structured, &shown); err != nil {
		return fault.Wrap(fault.Upstream, err, "read the plan")
	}
	_, err := fmt.Fprintf(proc.Stdout, "\nWith all arguments:\n%s\n", host.PlanWhole(shown.Plan))
	return err
}
