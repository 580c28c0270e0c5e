package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/config"
)

// trustCommand is `luanette trust`.
type trustCommand struct {
	File   string `arg:"" optional:"" type:"path" help:"The configuration file (default: luanette.toml in this folder)."`
	Show   bool   `help:"Only show what needs trust, and whether it has it."`
	Remove bool   `help:"End the trust in the file."`
	JSON   bool   `help:"Print JSON."`
}

// Help is shown by `luanette trust --help`.
func (trustCommand) Help() string {
	return `A luanette.toml that is only found because it is in the working folder may have come
with a repository. What it would start, open to other machines or send somewhere is
ignored until you trust it. Trust is for the entries as they are now; one that
changes needs it again. The rest of the file takes effect anyway.

Files in your home and configuration folders, those named with --config or
LUANETTE_CONFIG, and entries that luanette upstream add wrote are trusted.

  luanette trust --show
  luanette trust`
}

// trustView is what `luanette trust` prints.
type trustView struct {
	File  string      `json:"file"`
	Items []trustItem `json:"items"`
}

type trustItem struct {
	Key     string `json:"key"`
	Does    string `json:"does"`
	Trusted bool   `json:"trusted"`
}

// Run trusts the file, or shows or ends the trust in it.
func (c *trustCommand) Run(ctx context.Context, proc *process) error {
	file := cmp.Or(c.File, "luanette.toml")
	if c.Remove {
		removed, err := config.TrustStore(proc.Env).Remove(ctx, file)
		if err == nil && !removed {
			err = fault.New(fault.NotFound, "%s was not trusted", file).WithHint("`luanette trust --show` shows what needs trust")
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(proc.Stdout, "%s is no longer trusted\n", file)
		return err
	}
	loaded, err := config.Load(config.Sources{File: file, Env: proc.Env})
	if err != nil {
		return err
	}
	if !c.Show {
		if err := loaded.Trust(ctx, proc.Env); err != nil {
			return err
		}
	}
	view, err := viewTrust(proc, loaded)
	if err != nil {
		return err
	}
	return c.print(proc, view)
}

func viewTrust(proc *process, loaded *config.Loaded) (trustView, error) {
	hashes, err := config.TrustStore(proc.Env).Trusted(loaded.File)
	view := trustView{File: loaded.File, Items: []trustItem{}}
	for _, item := range loaded.NeedingTrust() {
		view.Items = append(view.Items, trustItem{item.Key, item.Does, hashes[item.Key] == item.Hash})
	}
	return view, err
}

func (c *trustCommand) print(proc *process, view trustView) error {
	if c.JSON {
		return printValue(proc, view)
	}
	if len(view.Items) == 0 {
		_, err := fmt.Fprintf(proc.Stdout, "%s: nothing in it needs trust\n", view.File)
		return err
	}
	for _, item := range view.Items {
		state := "not trusted"
		if item.Trusted {
			state = "trusted"
		}
		fmt.Fprintf(proc.Stdout, "%-11s  %s: %s\n", state, item.Key, plainText(item.Does))
	}
	return nil
}

// warnUntrusted says what the configuration file of the working folder asks for and does
// not get. It says so once, however often a command reads the file.
func warnUntrusted(proc *process, loaded *config.Loaded) {
	withheld := loaded.Withheld()
	if len(withheld) == 0 || proc.warned {
		return
	}
	proc.warned = true
	fmt.Fprintf(proc.Stderr, "%s in this folder is not trusted, so this is ignored:\n", loaded.File)
	for _, item := range withheld {
		fmt.Fprintf(proc.Stderr, "  %s: %s\n", item.Key, plainText(item.Does))
	}
	fmt.Fprintf(proc.Stderr, "if you want that, run `luanette trust`; --config %s uses all of it once\n", loaded.File)
}
