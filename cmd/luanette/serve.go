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
` + "`luanette config show`" + ` prints the effective values and their sources.

A changed file is read again by itself, and with ` + "`luanette reload`" + `. A server in a
terminal ends when the terminal is closed; elsewhere SIGHUP reloads.`
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
	hangups := notifyHangups()
	defer signal.Stop(hangups.received)
	srv, err := server.Build(ctx, loaded, server.Options{Version: version, Stderr: proc.Stderr, Env: proc.Env, Jobs: true})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	work.Go(func() { hangups.follow(ctx, srv, stop) })
	if err := sharing.listen(ctx, srv, stop); err != nil {
		fmt.Fprintf(proc.Stderr, "luanette stdio cannot attach to this server: %v\n", err)
	}
	if c.Daemon {
		work.Go(func() { sharing.stopIdle(ctx, srv, stop) })
	}
	return errors.Join(srv.Serve(ctx), sharing.close())
}

// hangups are the SIGHUP that the process receives.
type hangups struct {
	received chan os.Signal
	end      bool // the process ends at one
}

// notifyHangups begins to receive them. A process in a terminal gets one when the terminal is
// closed, and ends, unless it was started with nohup.
func notifyHangups() hangups {
	h := hangups{make(chan os.Signal, 1), hasTerminal() && !signal.Ignored(syscall.SIGHUP)}
	signal.Notify(h.received, syscall.SIGHUP)
	return h
}

// hasTerminal reports whether the process belongs to a terminal, wherever its output goes.
func hasTerminal() bool {
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	_ = terminal.Close() // nothing was written
	return true
}

// follow ends the server at a hang-up, or has it read the configuration again at each.
func (h hangups) follow(ctx context.Context, srv *server.Server, stop func()) {
	for {
		select {
		case <-h.received:
			if h.end {
				stop()
				return
			}
			_, _ = srv.Reload(ctx) // it is logged
		case <-ctx.Done():
			return
		}
	}
}
