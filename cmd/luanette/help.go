package main

import (
	"slices"

	"github.com/alecthomas/kong"
)

// globalFlags are the flags of every command.
type globalFlags struct {
	Version versionFlag `short:"v" help:"Print the version."`
	NoColor noColorFlag `help:"Print no colours. NO_COLOR=1 does the same."`
}

// versionFlag prints the version instead of running a command.
type versionFlag bool

// BeforeReset runs when the flag is parsed, before a missing command is an error.
func (versionFlag) BeforeReset(app *kong.Kong, proc *process) error {
	if err := (versionCommand{}).Run(proc); err != nil {
		return err
	}
	app.Exit(exitOK)
	return nil
}

// noColorFlag switches colours off.
type noColorFlag bool

// AfterApply runs if the flag was given.
func (noColorFlag) AfterApply(proc *process) error {
	proc.noColor = true
	return nil
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

// printHelp prints the help of a command, or all commands in their groups.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	if selected := ctx.Selected(); selected != nil {
		for node := selected; node != nil; node = node.Parent {
			node.Group = nil // it is of the list of all commands
		}
	}
	return kong.DefaultHelpPrinter(options, ctx)
}
