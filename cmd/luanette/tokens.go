package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/client"
)

// tokensCommand is `luanette tokens`.
type tokensCommand struct {
	clientFlags
	Namespace string `arg:"" optional:"" complete:"upstream" help:"Show each tool of this upstream."`
}

// Help is shown by `luanette tokens --help`.
func (tokensCommand) Help() string {
	return `Shows how many tokens of a model's context the tools take: those of each menu, and
those that each upstream would add if all its tools were listed. The numbers are
estimates; for common tokenizers they are up to 15 percent too high.

The menu is the list of tools that a client sees (mcp.menu, docs/code_mode.md).`
}

// Run prints the costs.
func (c *tokensCommand) Run(ctx context.Context, proc *process) error {
	c.Archive = true // the menus have the tools for jobs too
	var text string
	err := c.withClient(ctx, proc, func(api client.Client) (err error) {
		text, err = api.Read(ctx, "lua://tokens")
		return err
	})
	if err != nil {
		return err
	}
	var costs builtin.TokenCosts
	if err := json.Unmarshal([]byte(text), &costs); err != nil {
		return fault.Wrap(fault.Upstream, err, "read costs of tools")
	}
	if c.Namespace != "" {
		return c.tools(proc, &costs)
	}
	if c.JSON {
		return printJSON(proc.Stdout, json.RawMessage(text))
	}
	return printCosts(proc, &costs)
}

// printCosts shows the menus, and the upstreams if there are any.
func printCosts(proc *process, costs *builtin.TokenCosts) error {
	var menus, upstreams [][]string
	for _, m := range costs.Menus {
		name := m.Name
		if name == costs.Menu {
			name += " *"
		}
		menus = append(menus, append([]string{name}, numbers(m.Tools, m.Own, m.Others, m.Instructions, m.Tokens)...))
	}
	if err := table(proc, []string{"MENU", "TOOLS", "OWN", "OTHERS", "INSTRUCTIONS", "TOKENS"}, menus); err != nil {
		return err
	}
	fmt.Fprintf(proc.Stdout, "\n* is what clients see unless they ask for another: /mcp?menu=full, luanette stdio --menu full.\n")
	if len(costs.Upstreams) == 0 {
		return nil
	}
	for _, u := range costs.Upstreams {
		upstreams = append(upstreams, append([]string{u.Namespace}, numbers(len(u.Tools), u.Tokens)...))
	}
	fmt.Fprintln(proc.Stdout)
	if err := table(proc, []string{"UPSTREAM", "TOOLS", "TOKENS"}, upstreams); err != nil {
		return err
	}
	_, err := fmt.Fprintf(proc.Stdout, "\nWith every tool listed a client would see %d tokens.\n", costs.All)
	return err
}

func numbers(values ...int) []string {
	all := make([]string, len(values))
	for i, n := range values {
		all[i] = strconv.Itoa(n)
	}
	return all
}

// tools shows the tools of one upstream.
func (c *tokensCommand) tools(proc *process, costs *builtin.TokenCosts) error {
	var known []string
	for _, u := range costs.Upstreams {
		known = append(known, u.Namespace)
		if u.Namespace != c.Namespace {
			continue
		}
		if c.JSON {
			return printValue(proc, u)
		}
		var rows [][]string
		for _, t := range u.Tools {
			rows = append(rows, []string{t.Name, strconv.Itoa(t.Tokens), strconv.Itoa(t.TypeScript)})
		}
		return table(proc, []string{"TOOL", "TOKENS", "AS TYPESCRIPT"}, rows)
	}
	err := fault.New(fault.NotFound, "no upstream %q", c.Namespace)
	if close := suggest.Names(c.Namespace, known, 3); len(close) > 0 {
		return err.WithHint("did you mean %s?", strings.Join(close, " "))
	}
	return err.WithHint("`luanette upstream list` shows them")
}
