package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/luanette/luanette/internal/fault"
)

// previewCommand is `luanette preview`.
type previewCommand struct {
	deskFlags
	File  string   `arg:"" help:"The script; - reads it from standard input."`
	Param []string `short:"p" placeholder:"KEY=VALUE" help:"A parameter for main(params); KEY:=JSON passes JSON as it is."`
	Mock  []string `placeholder:"TOOL:=JSON" help:"What a tool is to answer, such as github.create_issue:={\"number\":7}."`
}

// Help is shown by `luanette preview --help`.
func (previewCommand) Help() string {
	return `The script is run, but nothing is changed: tools that say they only read are
called; every other call, write and command is noted and answered with a made-up
value of the right shape, or with the one --mock gives. What it would have done is
printed as a numbered plan.`
}

// Run shows the script's plan, made here or on a running server.
func (c *previewCommand) Run(ctx context.Context, world *process) error {
	source, err := readSource(world, c.File)
	if err != nil {
		return err
	}
	params, err := readParams(c.Param)
	if err != nil {
		return err
	}
	args := sourceArgs(source, params)
	if len(c.Mock) > 0 {
		if args["mocks"], err = readParams(c.Mock); err != nil {
			return err
		}
	}
	c.Archive = true // the tool is one of those for jobs
	view, err := c.ask(ctx, world, "lua_preview", args)
	if err != nil {
		return err
	}
	if c.JSON {
		if err := printJSON(world.Stdout, view.Structured); err != nil {
			return err
		}
	} else if err := c.show(world, view.Text(), view.Structured); err != nil {
		return err
	}
	var previewed struct{ Error *struct{ Message string } }
	if err := json.Unmarshal(view.Structured, &previewed); err != nil {
		return fault.Wrap(fault.Upstream, err, "read answer")
	}
	if previewed.Error != nil {
		return exitStatus(exitFailure)
	}
	return nil
}

// show prints what the script said, the plan, and the result it would have had.
func (c *previewCommand) show(world *process, plan string, structured json.RawMessage) error {
	said := newLive(world)
	lines, result, err := readAnswer(structured)
	if err != nil {
		return err
	}
	said.lines(lines)
	fmt.Fprintln(world.Stdout, plan)
	if result == nil {
		return nil
	}
	fmt.Fprint(world.Stdout, "It would return ")
	return printJSON(world.Stdout, result)
}
