package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/core/tool"
)

// toolsCommand is `luanette tools`.
type toolsCommand struct {
	clientFlags
	Query     []string `arg:"" optional:"" help:"Words that describe the tool; lists all tools if omitted."`
	Namespace string   `short:"n" placeholder:"NS" complete:"upstream" help:"Only tools of this upstream."`
	Limit     int      `default:"20" help:"Maximum number of matches."`
	refreshFlag
	Forget string `enum:",mine,all" default:"" placeholder:"WHOSE" help:"Erase what searches have learned from calls instead: mine, or all of all callers."`
}

// refreshFlag asks for current lists of tools.
type refreshFlag struct {
	Refresh bool `help:"Connect every upstream and use its current list. Otherwise lists of earlier connections are used, and only upstreams without one are connected."`
}

// refresh connects every upstream if the flag was given. A running server has connected
// them already.
func (f refreshFlag) refresh(ctx context.Context, proc *process, api client.Client) error {
	if !f.Refresh {
		return nil
	}
	_, err := callTool(ctx, proc, api, "mcp_list_upstreams", struct{}{})
	return err
}

// Run lists or searches the tools of all upstreams.
func (c *toolsCommand) Run(ctx context.Context, proc *process) error {
	if c.Forget != "" {
		return c.forget(ctx, proc)
	}
	if len(c.Query) > 0 {
		return c.search(ctx, proc)
	}
	return c.list(ctx, proc)
}

// forget erases what was learned.
func (c *toolsCommand) forget(ctx context.Context, proc *process) error {
	path := "/api/v1/search/learned"
	if c.Forget == "all" {
		path += "/all"
	}
	var answer struct{ Forgotten int }
	raw, err := c.admin(ctx, proc, http.MethodDelete, path, nil, &answer)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(proc.Stdout, raw)
	}
	fmt.Fprintf(proc.Stdout, "forgot %d words of searches\n", answer.Forgotten)
	return nil
}

func (c *toolsCommand) search(ctx context.Context, proc *process) error {
	c.Archive = true // finds the tools for jobs too
	args := map[string]any{"query": strings.Join(c.Query, " "), "limit": c.Limit}
	if c.Namespace != "" {
		args["namespace"] = c.Namespace
	}
	var view tool.View
	err := c.withClient(ctx, proc, func(api client.Client) (err error) {
		if err = c.refresh(ctx, proc, api); err == nil {
			view, err = callTool(ctx, proc, api, "search_tools", args)
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.print(proc, view)
}

// list shows every tool. It reads the resource, which has no limit.
func (c *toolsCommand) list(ctx context.Context, proc *process) error {
	var text string
	err := c.withClient(ctx, proc, func(api client.Client) (err error) {
		if err = c.refresh(ctx, proc, api); err == nil {
			text, err = api.Read(ctx, "lua://tools")
		}
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
		return printJSON(proc.Stdout, json.RawMessage(text))
	}
	var rows [][]string
	for _, t := range listed.Tools {
		if t.Namespace != "" && (c.Namespace == "" || c.Namespace == t.Namespace) {
			rows = append(rows, []string{t.Namespace + "." + t.Name, flagsText(t.Flags) + firstLine(t.Description)})
		}
	}
	return table(proc, []string{"TOOL", "DESCRIPTION"}, rows)
}

// flagsText returns the flags of a definition in brackets.
func flagsText(flags []string) string {
	if len(flags) == 0 {
		return ""
	}
	return "[" + strings.Join(flags, ", ") + "] "
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
