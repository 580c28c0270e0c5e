package main

import (
	"fmt"

	"github.com/luanette/luanette/internal/sandbox/profile"
)

// upstreamExplainCommand is `luanette upstream explain`.
type upstreamExplainCommand struct {
	settingFlags
	Name string `arg:"" complete:"upstream" help:"The upstream's namespace."`
	JSON bool   `help:"Print JSON."`
}

// Help is shown by `luanette upstream explain --help`.
func (upstreamExplainCommand) Help() string {
	return `Shows what the sandbox of a tool server refused in its last run, and the line of
its table in the configuration that would allow it. Whether it should be allowed
is for you to decide: most servers work without what they try.`
}

// Run prints the refusals of the last run.
func (c *upstreamExplainCommand) Run(proc *process) error {
	loaded, err := c.loadQuietly(proc, nil)
	if err != nil {
		return err
	}
	refusals, err := loaded.Launcher(proc.Env).Refusals(c.Name)
	if err != nil {
		return err
	}
	if c.JSON {
		if refusals == nil {
			refusals = []profile.Refusal{}
		}
		return printValue(proc, refusals)
	}
	if len(refusals) == 0 {
		fmt.Fprintf(proc.Stdout, "%s was refused nothing in its last run\n", c.Name)
		return nil
	}
	for _, r := range refusals {
		fmt.Fprintf(proc.Stdout, "%s  %s\n", r.Time.Format("2006-01-02 15:04:05"), plainText(r.String()))
		if r.Allow != "" {
			fmt.Fprintf(proc.Stdout, "    to allow it, in [upstreams.%s]: %s\n", c.Name, plainText(r.Allow))
		}
	}
	return nil
}
