package main

import (
	"fmt"

	"github.com/luanette/luanette/internal/base/textdiff"
	"github.com/luanette/luanette/internal/config/clientfile"
	"github.com/luanette/luanette/internal/config/install"
)

// uninstallCommand is `luanette uninstall`.
type uninstallCommand struct {
	settingFlags
	Clients []string `arg:"" name:"client" help:"The clients, such as claude-code or cursor."`
	Project bool     `help:"In the file of the current project instead of the user's own."`
	DryRun  bool     `help:"Show what would change."`
	JSON    bool     `help:"Print JSON."`
}

// Help is shown by `luanette uninstall --help`.
func (uninstallCommand) Help() string {
	return `Puts the configuration of clients back as it was before luanette install, byte for
byte. If a client changed its file since, only our entry is removed, and servers that
were moved to Luanette are put back. They also stay in luanette.toml.`
}

// Run removes Luanette from clients.
func (c *uninstallCommand) Run(proc *process) error {
	i, _, err := c.installer(proc, true)
	if err != nil {
		return err
	}
	var all []install.Result
	for _, name := range c.Clients {
		client, failed := clientfile.ClientNamed(name)
		if failed != nil {
			return failed
		}
		results, failed := i.Uninstall(client, c.Project, c.DryRun)
		if failed != nil {
			printError(proc, failed)
			err = exitStatus(exitFailure)
			continue
		}
		all = append(all, results...)
		if !c.JSON {
			c.print(proc, client, results)
		}
	}
	if c.JSON {
		if printed := printChanges(proc, all); printed != nil {
			return printed
		}
	}
	return err
}

func (c *uninstallCommand) print(proc *process, client clientfile.Client, results []install.Result) {
	for _, r := range results {
		path := underHome(proc, r.Path)
		switch {
		case c.DryRun:
			fmt.Fprint(proc.Stdout, textdiff.Unified(r.Path, r.Before, r.After))
		case !r.Changed():
			fmt.Fprintf(proc.Stdout, "%s: not installed in %s\n", client.Name, path)
		case r.After == nil:
			fmt.Fprintf(proc.Stdout, "%s: removed %s, which did not exist before\n", client.Name, path)
		case r.Cut:
			fmt.Fprintf(proc.Stdout, "%s: removed luanette from %s, which had changed since\n", client.Name, path)
		default:
			fmt.Fprintf(proc.Stdout, "%s: %s is as it was before\n", client.Name, path)
		}
	}
}
