package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/luanette/luanette/internal/builtin/scripttools"
	"github.com/luanette/luanette/internal/store/cas"
)

// scriptCommand is `luanette script`.
type scriptCommand struct {
	Store     scriptStoreCommand   `cmd:"" help:"Store a script; prints its hash."`
	Search    scriptSearchCommand  `cmd:"" aliases:"list" help:"List stored scripts, or find them by tag, creator or words."`
	Get       hashArg              `cmd:"" tool:"script_get" help:"Print a stored script."`
	Describe  hashArg              `cmd:"" tool:"lua_describe" help:"Show the description of a stored script."`
	Publish   scriptPublishCommand `cmd:"" help:"Publish a stored script as a tool."`
	Unpublish publishedArg         `cmd:"" tool:"script_unpublish" help:"Remove a published tool."`
	History   publishedArg         `cmd:"" tool:"script_history" help:"Show the versions of a published tool."`
}

type scriptStoreCommand struct {
	clientFlags
	File    string   `arg:"" complete:"file" help:"The script; - reads standard input."`
	Tag     []string `short:"t" help:"Tags to find it by."`
	Creator string   `help:"The script's creator."`
	Parent  string   `help:"Hash of the script it is derived from."`
}

// Help is shown by `luanette script store --help`.
func (scriptStoreCommand) Help() string {
	return `If the output is not a terminal, only the hash is printed:

  HASH=$(luanette script store report.lua)`
}

// Run stores the script.
func (c *scriptStoreCommand) Run(ctx context.Context, proc *process) error {
	source, err := readSource(proc, c.File)
	if err != nil {
		return err
	}
	args := map[string]any{"content": source}
	if word := storedLanguage(c.File); word != "" {
		args["language"] = word
	}
	setGiven(args, map[string]string{"creator": c.Creator, "parent": c.Parent})
	if len(c.Tag) > 0 {
		args["tags"] = c.Tag
	}
	view, err := c.call(ctx, proc, "script_store", args)
	if err != nil {
		return err
	}
	return c.printID(proc, view, "hash")
}

type scriptSearchCommand struct {
	clientFlags
	Words   []string `arg:"" optional:"" help:"Words that describe it."`
	Tag     string   `short:"t" help:"Only with this tag."`
	Creator string   `help:"Only by this creator."`
	Limit   int      `default:"20" help:"Maximum number of results."`
}

// Run finds scripts.
func (c *scriptSearchCommand) Run(ctx context.Context, proc *process) error {
	args := map[string]any{"limit": c.Limit}
	setGiven(args, map[string]string{"tag": c.Tag, "creator": c.Creator, "vibe": strings.Join(c.Words, " ")})
	return list(ctx, proc, &c.clientFlags, "script_search", args, func(found scripttools.FoundScripts) error {
		if found.NextCursor != "" {
			defer fmt.Fprintln(proc.Stderr, "there are more; --limit shows them")
		}
		none := "no scripts; `luanette script store FILE` stores one"
		return printList(proc, found.Scripts, none, "HASH NAME AGE TAGS DESCRIPTION", func(s scripttools.ScriptView) []string {
			return []string{s.Hash[:cas.MinPrefix], cmp.Or(s.Name, "-"), durationText(time.Since(s.CreatedAt)), strings.Join(s.Tags, ", "), firstLine(s.Description)}
		})
	})
}

type hashArg struct {
	clientFlags
	Hash string `arg:"" name:"hash | name" complete:"script" help:"The script's hash, the beginning of it, or its name."`
}

// callAndPrint calls a tool about the script and prints its result.
func (c *hashArg) callAndPrint(ctx context.Context, proc *process, name string, args map[string]any) error {
	return c.callAbout(ctx, proc, name, args, subject{"script_hash", c.Hash, scriptHash})
}

// Run calls the tool of the command.
func (c *hashArg) Run(ctx context.Context, proc *process, k *kong.Context) error {
	return c.callAndPrint(ctx, proc, toolOf(k), map[string]any{})
}

type scriptPublishCommand struct {
	hashArg
	Name string `help:"The tool's name; that of describe() if omitted."`
}

// Run publishes the script as a tool.
func (c *scriptPublishCommand) Run(ctx context.Context, proc *process) error {
	args := map[string]any{}
	if c.Name != "" {
		args["name"] = c.Name
	}
	return c.callAndPrint(ctx, proc, "script_publish", args)
}

// publishedArg is a command about a published tool.
type publishedArg struct {
	clientFlags
	Name string `arg:"" complete:"published" help:"The tool's name."`
}

// Run calls the tool of the command.
func (c *publishedArg) Run(ctx context.Context, proc *process, k *kong.Context) error {
	return c.callAndPrint(ctx, proc, toolOf(k), map[string]any{"name": c.Name})
}
