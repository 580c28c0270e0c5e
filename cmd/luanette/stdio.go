package main

import (
	"context"

	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/server"
)

// stdioCommand is `luanette stdio`.
type stdioCommand struct {
	settingFlags
}

// Help is shown by `luanette stdio --help`.
func (stdioCommand) Help() string {
	return `For clients that start their MCP servers themselves. In an mcpServers file:

  "luanette": { "command": "luanette", "args": ["stdio"] }`
}

// Run serves the client on standard input and output.
func (c *stdioCommand) Run(ctx context.Context, proc *process) error {
	loaded, err := c.load(proc, nil)
	if err != nil {
		return err
	}
	config.TuneCollector(loaded.GCPercent, proc.Env)
	srv, err := server.Build(ctx, loaded, server.Options{Version: version, Stderr: proc.Stderr, Env: proc.Env, Jobs: true})
	if err != nil {
		return err
	}
	return srv.ServeStdio(ctx, proc.Stdin, proc.Stdout)
}
