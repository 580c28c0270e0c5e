package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
)

// replayCommand is `luanette replay`.
type replayCommand struct {
	clientFlags
	ID     string `arg:"" name:"job" complete:"job" help:"The job's id, or the beginning of it."`
	Script string `placeholder:"FILE" complete:"file" help:"Another script to run with the recorded results; - reads it from standard input."`
}

// Help is shown by `luanette replay --help`.
func (replayCommand) Help() string {
	return `Runs a finished job again from its journal: every call of its script returns the
recorded result. No call is made, and no upstream is needed. The script's output
goes to the same streams as before; the result comes last, as JSON. With --script,
a changed script runs with the recorded results. If it makes a call that differs
from the recorded one, the step and both calls are shown, and the exit code is 1.`
}

// Run replays the job from the data folder, or on a running server.
func (c *replayCommand) Run(ctx context.Context, proc *process) error {
	args := map[string]any{}
	if c.Script != "" {
		source, err := readSource(proc, c.Script)
		if err != nil {
			return err
		}
		args["code"] = source
		if language := script.LanguageOf(c.Script); language != "" {
			args["language"] = language
		}
	}
	c.Archive = true
	var view tool.View
	err := c.withClient(ctx, proc, func(api client.Client) (err error) {
		if args["job_id"], err = jobID(ctx, proc, api, c.ID); err != nil {
			return err
		}
		view, err = callTool(ctx, proc, api, "job_replay", args)
		return err
	})
	if err != nil {
		return err
	}
	return c.report(proc, view.Structured)
}

// report prints the outcome of the replay.
func (c *replayCommand) report(proc *process, structured json.RawMessage) error {
	var replayed struct {
		Steps    int
		Unused   int
		Diverged bool
		Error    *struct{ Message, Hint string }
	}
	if err := json.Unmarshal(structured, &replayed); err != nil {
		return fault.Wrap(fault.Upstream, err, "read result")
	}
	if c.JSON {
		if err := printJSON(proc.Stdout, structured); err != nil {
			return err
		}
	} else if err := newLive(proc).printResult(structured); err != nil {
		return err
	}
	switch {
	case replayed.Error == nil:
		fmt.Fprintf(proc.Stderr, "%d of %d steps used their recorded results\n", replayed.Steps-replayed.Unused, replayed.Steps)
		return nil
	case replayed.Diverged:
		fmt.Fprintf(proc.Stderr, "differs from the journal: %s\n", replayed.Error.Message)
	default:
		fmt.Fprintln(proc.Stderr, replayed.Error.Message)
	}
	if replayed.Error.Hint != "" {
		fmt.Fprintf(proc.Stderr, "  %s\n", replayed.Error.Hint)
	}
	return exitStatus(exitFailure)
}
