package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/luanette/luanette/internal/base/fault"
)

// previewCommand is `luanette preview`.
type previewCommand struct {
	clientFlags
	languageFlag
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
	c.Notes = scriptNotes(c.File, c.Param)
	args := c.of(c.File, sourceArgs(source, params))
	if len(c.Mock) > 0 {
		if args["mocks"], err = readParams(c.Mock); err != nil {
			return err
		}
	}
	view, err := c.ask(ctx, world, "lua_preview", args)
	if err != nil {
		return err
	}
	if c.JSON {
		err = printJSON(world.Stdout, view.Structured)
	} else {
		_, err = fmt.Fprintln(world.Stdout, view.Text())
	}
	if err != nil {
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
