package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/luanette/luanette/internal/server"
)

// serveCommand is `luanette serve`.
type serveCommand struct {
	settingFlags
	menuFlags
	Listen  *string `short:"l" placeholder:"ADDR" help:"Address to listen on (default 127.0.0.1:8081)."`
	Node    *string `placeholder:"NAME" help:"Name of this process among those that share a Postgres database (default: the machine's name)."`
	TLSCert *string `name:"tls-cert" type:"path" placeholder:"FILE" help:"Certificate for HTTPS; luanette cert creates one."`
	TLSKey  *string `name:"tls-key" type:"path" placeholder:"FILE" help:"The certificate's private key."`
	Daemon  bool    `hidden:"" help:"End when there are no clients; for luanette stdio --daemon."`
}

// Help is shown by `luanette serve --help`.
func (serveCommand) Help() string {
	return `The server needs no configuration. It serves MCP on http://127.0.0.1:8081/mcp, and
upstream servers can be added while it runs.

Every flag has a key in luanette.toml and a LUANETTE_* variable;
` + "`luanette config show`" + ` prints the effective values and their sources.`
}

// Run serves until the context ends.
func (c *serveCommand) Run(ctx context.Context, proc *process) error {
	given := c.settings()
	maps.Copy(given, map[string]*string{"listen": c.Listen, "node": c.Node, "tls_cert": c.TLSCert, "tls_key": c.TLSKey})
	loaded, err := c.load(proc, given)
	if err != nil {
		return err
	}
	sharing, err := c.reserve(ctx, proc, loaded)
	if err != nil {
		return err
	}
	defer func() { _ = sharing.close() }()
	loaded.TuneCollector(proc.Env)
	srv, err := server.Build(ctx, loaded, server.Options{Version: version, Stderr: proc.Stderr, Env: proc.Env, Jobs: true})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	work.Go(func() { reloadOnHangup(ctx, srv) })
	if err := sharing.listen(ctx, srv, stop); err != nil {
		fmt.Fprintf(proc.Stderr, "luanette stdio cannot attach to this server: %v\n", err)
	}
	if c.Daemon {
		work.Go(func() { sharing.stopIdle(ctx, srv, stop) })
	}
	return errors.Join(srv.Serve(ctx), sharing.close())
}

// reloadOnHangup reads the configuration again at each SIGHUP.
func reloadOnHangup(ctx context.Context, srv *server.Server) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	for {
		select {
		case <-hangups:
			srv.Reload(ctx)
		case <-ctx.Done():
			return
		}
	}
}
