package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/luanette/luanette/internal/server"
)

// serveCommand is `luanette serve`.
type serveCommand struct {
	settingFlags
	Listen  *string `short:"l" placeholder:"ADDR" help:"Address to listen on (default 127.0.0.1:8081)."`
	Node    *string `placeholder:"NAME" help:"What this process is called among several on one Postgres (default: the machine's name)."`
	TLSCert *string `name:"tls-cert" type:"path" placeholder:"FILE" help:"Certificate to serve HTTPS with; luanette cert makes one."`
	TLSKey  *string `name:"tls-key" type:"path" placeholder:"FILE" help:"The certificate's private key."`
}

// Help is shown by `luanette serve --help`.
func (serveCommand) Help() string {
	return `With no configuration at all this starts and is useful: an MCP server on
http://127.0.0.1:8081/mcp that upstream servers can be added to at run time.

Every flag has a key in luanette.toml and a LUANETTE_* variable;
` + "`luanette config show`" + ` prints what is in force and why.`
}

// Run serves until the context ends.
func (c *serveCommand) Run(ctx context.Context, world *process) error {
	loaded, err := c.load(world, map[string]*string{"listen": c.Listen, "node": c.Node, "tls_cert": c.TLSCert, "tls_key": c.TLSKey})
	if err != nil {
		return err
	}
	if err := loaded.CheckListen(ctx); err != nil {
		return err
	}
	server.TuneCollector(loaded.GCPercent, world.Env)
	srv, err := server.Build(ctx, loaded, server.Options{Version: version, Stderr: world.Stderr, Env: world.Env, Jobs: true})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	work.Go(func() { reloadOnHangup(ctx, srv) })
	return srv.Serve(ctx)
}

// reloadOnHangup reads the configuration again when told so by SIGHUP.
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
