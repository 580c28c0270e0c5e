package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/mcp/attach"
	"github.com/luanette/luanette/internal/server"
)

// stdioCommand is `luanette stdio`.
type stdioCommand struct {
	settingFlags
	menuFlags
	Set    string `placeholder:"NAME" help:"Only the tools of this set (luanette set)."`
	Daemon bool   `help:"Start a server in the background if none runs on the data folder. It ends when it has no clients."`
	Alone  bool   `help:"Serve in this process, even if a server runs on the data folder."`
}

// Help is shown by `luanette stdio --help`.
func (stdioCommand) Help() string {
	return `For clients that start their MCP servers themselves. In an mcpServers file:

  "luanette": { "command": "luanette", "args": ["stdio"] }

If a server of the same configuration runs on the data folder, the client is
attached to it, and uses its upstreams. Otherwise this process serves the client
by itself, with upstreams of its own; with --daemon it starts a server in the
background first, which all such clients share.

With --set the client sees the tools of a set only (docs/sets.md).
With --menu the client sees more of our own tools directly (docs/code_mode.md).`
}

// Run serves the client on standard input and output.
func (c *stdioCommand) Run(ctx context.Context, proc *process) error {
	loaded, err := c.load(proc, c.settings())
	if err != nil {
		return err
	}
	if c.Set != "" {
		if err := loaded.CheckSet(c.Set); err != nil {
			return err
		}
	}
	loaded.TuneCollector(proc.Env)
	if !c.Alone {
		if attached, err := c.attach(ctx, proc, loaded); attached {
			return err
		}
	}
	srv, err := server.Build(ctx, loaded, server.Options{Version: version, Stderr: proc.Stderr, Env: proc.Env, Jobs: true})
	if err != nil {
		return err
	}
	return srv.ServeStdio(ctx, c.Set, proc.Stdin, proc.Stdout)
}

// attach relays the client to a running server. attached is false if there is none.
func (c *stdioCommand) attach(ctx context.Context, proc *process, loaded *config.Loaded) (attached bool, err error) {
	place := placeOf(loaded, proc.Env)
	find := func(ctx context.Context) (attach.Server, error) { return attach.Find(ctx, place, loaded.File == "") }
	relay := attach.Relay{Find: find, Log: func(message string) { fmt.Fprintln(proc.Stderr, "luanette:", message) }}
	relay.Want.Set = c.Set
	if c.Menu != nil {
		relay.Want.Menu = *c.Menu
	}
	if c.Daemon {
		starter := attach.Starter{Place: place, Args: c.daemonArgs(loaded), Folder: daemonFolder(loaded), Find: find}
		relay.Find = starter.FindOrStart
	}
	err = relay.Run(ctx, proc.Stdin, proc.Stdout)
	if !relay.Attached() {
		if other := (*attach.OtherError)(nil); c.Daemon || errors.As(err, &other) {
			fmt.Fprintf(proc.Stderr, "luanette: %v; this client is served separately\n", err)
		}
		return false, nil
	}
	return true, err
}

// daemonArgs returns the command that starts a server of the same configuration. A file
// that is only found because it is in the working folder is found again: naming it would
// mean to trust it.
func (c *stdioCommand) daemonArgs(loaded *config.Loaded) []string {
	args := []string{"serve", "--daemon"}
	if full, err := filepath.Abs(loaded.File); err == nil && loaded.File != "" && !loaded.FoundHere() {
		args = append(args, "--config", full)
	}
	if full, err := filepath.Abs(loaded.Data); err == nil {
		args = append(args, "--data", full)
	}
	if c.Music {
		args = append(args, "--music")
	}
	for flag, value := range map[string]*string{"--database": c.Database, "--log-level": c.LogLevel, "--log-format": c.LogFormat, "--otlp-endpoint": c.OTLPEndpoint} {
		if value != nil {
			args = append(args, flag, *value)
		}
	}
	return args
}

// daemonFolder returns the folder that a server in the background runs in. It must not
// depend on which client started it.
func daemonFolder(loaded *config.Loaded) string {
	if loaded.File != "" {
		return filepath.Dir(loaded.File)
	}
	if os.MkdirAll(loaded.Data, 0o700) != nil {
		return "" // the server reports it
	}
	return loaded.Data
}
