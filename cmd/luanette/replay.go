package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/script"
)

// replayCommand is `luanette replay`.
type replayCommand struct {
	clientFlags
	ID     string `arg:"" name:"job" help:"The job's id."`
	Script string `placeholder:"FILE" help:"Another script to try on the same answers; - reads it from standard input."`
}

// Help is shown by `luanette replay --help`.
func (replayCommand) Help() string {
	return `A job that is over is run again from its journal: whatever its script asks of the
world is answered as it was answered then. Nothing is done, and no upstream is
needed. What the script prints goes where it printed it; the result comes last, as
JSON. With --script a changed script is tried on the same answers. Where it wants
something else than was recorded, the step and both sides are shown, and the exit
code is 1.`
}

// Run replays the job from the data folder, or on a running server.
func (c *replayCommand) Run(ctx context.Context, world *process) error {
	args := map[string]any{"job_id": c.ID}
	if c.Script != "" {
		source, err := readSource(world, c.Script)
		if err != nil {
			return err
		}
		args["code"] = source
		if language := script.LanguageOf(c.Script); language != "" {
			args["language"] = language
		}
	}
	c.Archive, c.Wait = true, 0 // no upstream is asked
	view, err := c.ask(ctx, world, "job_replay", args)
	if err != nil {
		return err
	}
	var replayed struct {
		Steps    int
		Unused   int
		Diverged bool
		Error    *struct{ Message, Hint string }
	}
	if err := json.Unmarshal(view.Structured, &replayed); err != nil {
		return fault.Wrap(fault.Upstream, err, "read answer")
	}
	if c.JSON {
		if err := printJSON(world.Stdout, view.Structured); err != nil {
			return err
		}
	} else if err := newLive(world).answer(view.Structured); err != nil {
		return err
	}
	switch {
	case replayed.Error == nil:
		fmt.Fprintf(world.Stderr, "%d of %d steps were answered from the journal\n", replayed.Steps-replayed.Unused, replayed.Steps)
		return nil
	case replayed.Diverged:
		fmt.Fprintf(world.Stderr, "went another way: %s\n", replayed.Error.Message)
	default:
		fmt.Fprintln(world.Stderr, replayed.Error.Message)
	}
	if replayed.Error.Hint != "" {
		fmt.Fprintf(world.Stderr, "  %s\n", replayed.Error.Hint)
	}
	return exitStatus(exitFailure)
}
