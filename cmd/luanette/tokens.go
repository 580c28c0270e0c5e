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
	Namespace string `arg:"" optional:"" help:"Show each tool of this upstream."`
}

// Help is shown by `luanette tokens --help`.
func (tokensCommand) Help() string {
	return `Shows how many tokens of a model's context the tools take: those that clients see
now, and those that each upstream would add if all its tools were listed. The
numbers are estimates; for common tokenizers they are off by about 10 percent.`
}

// Run prints the costs.
func (c *tokensCommand) Run(ctx context.Context, proc *process) error {
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
	var rows [][]string
	for _, u := range costs.Upstreams {
		rows = append(rows, []string{u.Namespace, strconv.Itoa(len(u.Tools)), strconv.Itoa(u.Tokens)})
	}
	if err := table(proc, []string{"UPSTREAM", "TOOLS", "TOKENS"}, rows); err != nil {
		return err
	}
	_, err = fmt.Fprintf(proc.Stdout, "\nA client sees %d tokens now (%s mode); in code mode %d, with every tool listed %d.\n",
		costs.Menu, costs.Mode, costs.Code, costs.All)
	return err
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
