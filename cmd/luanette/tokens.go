package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/client"
)

// tokensCommand is `luanette tokens`.
type tokensCommand struct {
	clientFlags
	Namespace string `arg:"" optional:"" help:"Show each tool of this server."`
}

// Help is shown by `luanette tokens --help`.
func (tokensCommand) Help() string {
	return `What tools take of a model's context: the server's menu as clients see it now,
and what each upstream would add if all of its tools were listed. The numbers are
estimates that fit the usual vocabularies within about a tenth.`
}

// Run prints the costs.
func (c *tokensCommand) Run(ctx context.Context, world *process) error {
	var text string
	err := c.at(ctx, world, func(api client.Client) (err error) {
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
		return c.tools(world, &costs)
	}
	if c.JSON {
		return printJSON(world.Stdout, json.RawMessage(text))
	}
	var rows [][]string
	for _, u := range costs.Upstreams {
		rows = append(rows, []string{u.Namespace, strconv.Itoa(len(u.Tools)), strconv.Itoa(u.Tokens)})
	}
	if err := table(world, []string{"UPSTREAM", "TOOLS", "TOKENS"}, rows); err != nil {
		return err
	}
	_, err = fmt.Fprintf(world.Stdout, "\n%d tokens are what a client sees now (%s mode); in code mode %d, with every tool listed %d.\n",
		costs.Menu, costs.Mode, costs.Code, costs.All)
	return err
}

// tools shows one server's tools.
func (c *tokensCommand) tools(world *process, costs *builtin.TokenCosts) error {
	var known []string
	for _, u := range costs.Upstreams {
		known = append(known, u.Namespace)
		if u.Namespace != c.Namespace {
			continue
		}
		if c.JSON {
			raw, err := json.Marshal(u)
			if err != nil {
				return err
			}
			return printJSON(world.Stdout, raw)
		}
		var rows [][]string
		for _, t := range u.Tools {
			rows = append(rows, []string{t.Name, strconv.Itoa(t.Tokens), strconv.Itoa(t.TypeScript)})
		}
		return table(world, []string{"TOOL", "TOKENS", "AS TYPESCRIPT"}, rows)
	}
	err := fault.New(fault.NotFound, "no upstream %q", c.Namespace)
	if close := suggest.Names(c.Namespace, known, 3); len(close) > 0 {
		return err.WithHint("did you mean %s?", joined(close))
	}
	return err.WithHint("`luanette upstream list` shows them")
}
