package main

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// flagSet are flags that many commands have.
type flagSet struct {
	name  string // by which docs/cli.md refers to them
	about string
	flags string
}

// flagSets are in the order in which help shows them, after a command's own flags.
var flagSets = []flagSet{
	{"server", "Commands that use a running server, or one in this process:", "server key ca-file json wait"},
	{"configuration", "Commands that read the configuration:", "config data database log-level log-format otlp-endpoint"},
	{"every command", "Every command:", "help version no-color"},
}

// setOf returns the index of the set that a flag of a command belongs to, or -1: a command
// has the whole set, or at least its first flag.
func setOf(flag *kong.Flag, all []*kong.Flag) int {
	return slices.IndexFunc(flagSets, func(set flagSet) bool {
		names := strings.Fields(set.flags)
		return slices.Contains(names, flag.Name) && slices.ContainsFunc(all, func(other *kong.Flag) bool { return other.Name == names[0] })
	})
}

// expandHelp rewrites the usual ways to ask for help into those that the parser knows.
func expandHelp(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	}
	return args
}

// printHelp prints the help of a command, its own flags first, or all commands in their
// groups.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	if selected := ctx.Selected(); selected != nil {
		defer groupFlags(selected)()
		for node := selected; node != nil; node = node.Parent {
			node.Group = nil // it is of the list of all commands
		}
	}
	return kong.DefaultHelpPrinter(options, ctx)
}

// groupFlags puts a command's own flags before those that many commands have, until restore
// is called: the parser still needs them where they were.
func groupFlags(command *kong.Node) (restore func()) {
	all := slices.Concat(command.AllFlags(true)...)
	own, app := command.Flags, command
	for app.Parent != nil {
		app = app.Parent
	}
	shared := app.Flags
	slices.SortStableFunc(all, func(a, b *kong.Flag) int { return setOf(a, all) - setOf(b, all) })
	for _, flag := range all {
		if set := setOf(flag, all); set >= 0 {
			title := strings.ToUpper(flagSets[set].name[:1]) + flagSets[set].name[1:] + ":"
			flag.Group = &kong.Group{Key: title, Title: title}
		}
	}
	app.Flags, command.Flags = nil, all
	return func() { app.Flags, command.Flags = shared, own }
}
