package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/client"
)

// toolsCommand is `luanette tools`.
type toolsCommand struct {
	clientFlags
	Query     []string `arg:"" optional:"" help:"Words for what a tool should do; all tools when left away."`
	Namespace string   `short:"n" placeholder:"NS" help:"Only this server's tools."`
	Limit     int      `default:"20" help:"How many matches at most."`
}

// Run lists or searches the tools of all upstreams.
func (c *toolsCommand) Run(ctx context.Context, world *process) error {
	if len(c.Query) > 0 {
		return c.search(ctx, world)
	}
	return c.list(ctx, world)
}

func (c *toolsCommand) search(ctx context.Context, world *process) error {
	args := map[string]any{"query": joined(c.Query), "limit": c.Limit}
	if c.Namespace != "" {
		args["namespace"] = c.Namespace
	}
	view, err := c.ask(ctx, world, "search_tools", args)
	if err != nil {
		return err
	}
	return c.print(world, view)
}

// list shows every tool, which the resource for it does without a limit.
func (c *toolsCommand) list(ctx context.Context, world *process) error {
	var text string
	err := c.at(ctx, world, func(api client.Client) (err error) {
		text, err = api.Read(ctx, "lua://tools")
		return err
	})
	if err != nil {
		return err
	}
	var listed struct {
		Tools []struct {
			Name, Namespace, Description string
			Flags                        []string
		}
	}
	if err := json.Unmarshal([]byte(text), &listed); err != nil {
		return fault.Wrap(fault.Upstream, err, "read list of tools")
	}
	if c.JSON {
		return printJSON(world.Stdout, json.RawMessage(text))
	}
	var rows [][]string
	for _, t := range listed.Tools {
		if t.Namespace != "" && (c.Namespace == "" || c.Namespace == t.Namespace) {
			rows = append(rows, []string{t.Namespace + "." + t.Name, warned(t.Flags) + firstLine(t.Description)})
		}
	}
	return table(world, []string{"TOOL", "DESCRIPTION"}, rows)
}

// warned is what a scanner found in a definition.
func warned(flags []string) string {
	if len(flags) == 0 {
		return ""
	}
	return "[" + strings.Join(flags, ", ") + "] "
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

func joined(words []string) string { return strings.Join(words, " ") }
