package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/plural"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/config"
)

// setCommand is `luanette set`: sets of tools.
type setCommand struct {
	List setListCommand `cmd:"" help:"List the sets."`
	Show setShowCommand `cmd:"" help:"Show the tools of a set."`
	Add  setAddCommand  `cmd:"" help:"Add a set to the configuration."`
}

// Help is shown by `luanette set --help`.
func (setCommand) Help() string {
	return `A set of tools is served at /mcp/sets/NAME and by luanette stdio --set NAME. Who uses it
sees nothing else: neither in lists nor in searches nor in code (docs/sets.md).`
}

type setFlags struct{ clientFlags }

// read reads the sets.
func (f *setFlags) read(ctx context.Context, proc *process) (sets []builtin.ToolSet, err error) {
	f.Archive = true // sets may have the tools for jobs too
	var text string
	if err := f.withClient(ctx, proc, func(api client.Client) (err error) {
		text, err = api.Read(ctx, "lua://sets")
		return err
	}); err != nil {
		return nil, err
	}
	var all struct{ Sets []builtin.ToolSet }
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fault.Wrap(fault.Upstream, err, "read sets of tools")
	}
	return all.Sets, nil
}

type setListCommand struct{ setFlags }

// Run lists the sets.
func (c *setListCommand) Run(ctx context.Context, proc *process) error {
	sets, err := c.read(ctx, proc)
	if err != nil {
		return err
	}
	if c.JSON {
		return printValue(proc, map[string]any{"sets": sets})
	}
	if len(sets) == 0 {
		_, err := fmt.Fprintln(proc.Stdout, "no sets; `luanette set add NAME PATTERN…` adds one")
		return err
	}
	var rows [][]string
	for _, s := range sets {
		rows = append(rows, []string{s.Name, strconv.Itoa(len(s.Tools)), s.Menu, strconv.Itoa(s.Listed), strconv.Itoa(s.Tokens), s.Address})
	}
	return table(proc, strings.Fields("SET TOOLS MENU LISTED TOKENS ADDRESS"), rows)
}

type setShowCommand struct {
	setFlags
	Name string `arg:"" help:"The set."`
}

// Run shows the tools of a set.
func (c *setShowCommand) Run(ctx context.Context, proc *process) error {
	sets, err := c.read(ctx, proc)
	if err != nil {
		return err
	}
	for _, s := range sets {
		if s.Name == c.Name {
			return c.print(proc, s)
		}
	}
	return fault.New(fault.NotFound, "there is no set %q", c.Name).WithHint("`luanette set list` lists them")
}

func (c *setShowCommand) print(proc *process, s builtin.ToolSet) error {
	if c.JSON {
		return printValue(proc, s)
	}
	fmt.Fprintf(proc.Stdout, "%s, menu %s: clients see %s in %s\n\n", s.Address, s.Menu, plural.Count(s.Listed, "tool"), plural.Count(s.Tokens, "token"))
	var rows [][]string
	for _, t := range s.Tools {
		rows = append(rows, []string{t.Name, strconv.Itoa(t.Tokens)})
	}
	return table(proc, []string{"TOOL", "TOKENS"}, rows)
}

type setAddCommand struct {
	settingFlags
	Name         string   `arg:"" help:"The set's name, which is part of its address."`
	Tools        []string `arg:"" name:"pattern" help:"Its tools, as namespace.tool or the name of a script; * matches any text."`
	Menu         string   `placeholder:"NAME" help:"What its clients are shown: code, standard, full or direct."`
	Instructions string   `placeholder:"TEXT" help:"For the models that use it."`
	Replace      bool     `help:"Replace a set of that name."`
}

// Run adds the set.
func (c *setAddCommand) Run(_ context.Context, proc *process) error {
	file, err := config.AddSet(config.Sources{File: c.Config, Env: proc.Env}, c.Name, config.Set{Tools: c.Tools, Menu: c.Menu, Instructions: c.Instructions}, c.Replace)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(proc.Stdout, "added the set %s to %s\nconnect a client with `luanette install CLIENT --set %s`\n", c.Name, file, c.Name)
	return err
}
