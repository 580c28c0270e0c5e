package main

import (
	"context"
	"fmt"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/rawjson"
)

// scriptCommand is `luanette script`.
type scriptCommand struct {
	Store     scriptStoreCommand     `cmd:"" help:"Keep a script; prints its hash."`
	Search    scriptSearchCommand    `cmd:"" help:"Find kept scripts by tag, creator or words."`
	Get       scriptGetCommand       `cmd:"" help:"Print a kept script."`
	Describe  scriptDescribeCommand  `cmd:"" help:"Show what a kept script says of itself."`
	Publish   scriptPublishCommand   `cmd:"" help:"Make a kept script a tool."`
	Unpublish scriptUnpublishCommand `cmd:"" help:"Take a published tool away."`
	History   scriptHistoryCommand   `cmd:"" help:"Show the versions of a published tool."`
}

// answer calls one of our tools and prints what it says.
func (f *clientFlags) answer(ctx context.Context, world *process, name string, args map[string]any) error {
	view, err := f.ask(ctx, world, name, args)
	if err != nil {
		return err
	}
	return f.print(world, view)
}

// handOut calls one of our tools that makes something. A person is told about it; a
// program that reads the output is given the id, the first of these fields that is
// there, and nothing else.
func (f *clientFlags) handOut(ctx context.Context, world *process, name string, args map[string]any, ids ...string) error {
	view, err := f.ask(ctx, world, name, args)
	if err != nil {
		return err
	}
	if f.JSON || terminalWidth(world.Stdout) > 0 {
		return f.print(world, view)
	}
	fmt.Fprintln(world.Stderr, view.Text())
	for _, id := range ids {
		if text, ok := rawjson.GetText(view.Structured, id); ok {
			_, err = fmt.Fprintln(world.Stdout, text)
			return err
		}
	}
	return fault.New(fault.Upstream, "the server did not say the id").WithHint("it may be of another version; --json prints what it said")
}

type scriptStoreCommand struct {
	clientFlags
	File    string   `arg:"" help:"The script; - reads standard input."`
	Tag     []string `short:"t" help:"Words to find it by."`
	Creator string   `help:"Who made it."`
	Parent  string   `help:"Hash of the script it was made from."`
}

// Help is shown by `luanette script store --help`.
func (scriptStoreCommand) Help() string {
	return `Where the output is no terminal it is the hash alone:

  HASH=$(luanette script store report.lua)`
}

// Run keeps the script.
func (c *scriptStoreCommand) Run(ctx context.Context, world *process) error {
	source, err := readSource(world, c.File)
	if err != nil {
		return err
	}
	args := map[string]any{"content": source}
	if word := storedLanguage(c.File); word != "" {
		args["language"] = word
	}
	for key, value := range map[string]string{"creator": c.Creator, "parent": c.Parent} {
		if value != "" {
			args[key] = value
		}
	}
	if len(c.Tag) > 0 {
		args["tags"] = c.Tag
	}
	return c.handOut(ctx, world, "script_store", args, "hash")
}

type scriptSearchCommand struct {
	clientFlags
	Words   []string `arg:"" optional:"" help:"Words about it."`
	Tag     string   `short:"t" help:"Only with this tag."`
	Creator string   `help:"Only by this creator."`
	Limit   int      `default:"20" help:"How many at most."`
}

// Run finds scripts.
func (c *scriptSearchCommand) Run(ctx context.Context, world *process) error {
	args := map[string]any{"limit": c.Limit}
	for key, value := range map[string]string{"tag": c.Tag, "creator": c.Creator, "vibe": joined(c.Words)} {
		if value != "" {
			args[key] = value
		}
	}
	return c.answer(ctx, world, "script_search", args)
}

type hashArg struct {
	clientFlags
	Hash string `arg:"" help:"Its hash, or the first 12 digits or more."`
}

type scriptGetCommand struct{ hashArg }

// Run prints the script.
func (c *scriptGetCommand) Run(ctx context.Context, world *process) error {
	return c.answer(ctx, world, "script_get", map[string]any{"script_hash": c.Hash})
}

type scriptDescribeCommand struct{ hashArg }

// Run shows its description.
func (c *scriptDescribeCommand) Run(ctx context.Context, world *process) error {
	return c.answer(ctx, world, "lua_describe", map[string]any{"script_hash": c.Hash})
}

type scriptPublishCommand struct {
	hashArg
	Name string `help:"The tool's name; the one describe() gives when left away."`
}

// Run makes it a tool.
func (c *scriptPublishCommand) Run(ctx context.Context, world *process) error {
	args := map[string]any{"script_hash": c.Hash}
	if c.Name != "" {
		args["name"] = c.Name
	}
	return c.answer(ctx, world, "script_publish", args)
}

type toolArg struct {
	clientFlags
	Name string `arg:"" help:"The tool's name."`
}

type scriptUnpublishCommand struct{ toolArg }

// Run takes the tool away.
func (c *scriptUnpublishCommand) Run(ctx context.Context, world *process) error {
	return c.answer(ctx, world, "script_unpublish", map[string]any{"name": c.Name})
}

type scriptHistoryCommand struct{ toolArg }

// Run shows its versions.
func (c *scriptHistoryCommand) Run(ctx context.Context, world *process) error {
	return c.answer(ctx, world, "script_history", map[string]any{"name": c.Name})
}
