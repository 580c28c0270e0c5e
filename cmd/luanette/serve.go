package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/luanette/luanette/internal/access/owner"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/filelock"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/attach"
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
	err = c.serve(ctx, proc, loaded)
	if err == nil || loaded.Log.Format != "json" {
		return err
	}
	// Every line is for a program.
	slog.New(slog.NewJSONHandler(proc.Stderr, nil)).ErrorContext(ctx, "the server failed", "error", err.Error(), "hint", hintOf(err))
	return exitStatus(failureOf(err))
}

func (c *serveCommand) serve(ctx context.Context, proc *process, loaded *config.Loaded) error {
	sharing, err := c.reserve(ctx, proc, loaded)
	if err != nil {
		return err
	}
	defer func() { _ = sharing.close() }()
	loaded.TuneCollector(proc.Env)
	hangups := notifyHangups()
	defer signal.Stop(hangups.received)
	srv, err := server.Build(ctx, loaded, server.Options{Version: version, Stderr: proc.Stderr, Env: proc.Env, Jobs: true, ListenFirst: true})
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

// placeOf returns where the server of a configuration can be attached to. A server without
// a configuration file uses the user's own as soon as there is one.
func placeOf(loaded *config.Loaded, env config.Environment) attach.Place {
	database := loaded.Database
	if file, ok := strings.CutPrefix(database, "sqlite:"); ok {
		if full, err := filepath.Abs(file); err == nil {
			database = full
		}
	}
	return attach.PlaceOf(loaded.Data, cmp.Or(loaded.File, config.UserFile(env)), database)
}

// takeoverTimeout is how long a server in the background may take to end.
const takeoverTimeout = 30 * time.Second

// sharing lets `luanette stdio` attach to the server of this process.
type sharing struct {
	config   *config.Loaded
	daemon   bool
	place    attach.Place
	lock     *filelock.Lock // nil if another server has the place, or once listener has it
	listener *attach.Listener
}

// reserve makes this process the one that clients attach to, unless another server is
// that. A server in the background is asked to end first. It also checks the address that
// the server is to listen on, before anything is stored.
func (c *serveCommand) reserve(ctx context.Context, proc *process, loaded *config.Loaded) (s *sharing, err error) {
	s = &sharing{config: loaded, daemon: c.Daemon, place: placeOf(loaded, proc.Env)}
	replaced, err := c.replaceDaemon(ctx, proc, s.place)
	if err != nil {
		return nil, err
	}
	if c.Daemon || replaced {
		ctx, cancel := context.WithTimeout(ctx, takeoverTimeout)
		defer cancel()
		if s.lock, err = attach.Reserve(ctx, s.place, true); err != nil {
			return nil, err
		}
	}
	if c.Daemon {
		chooseAddress(ctx, loaded)
	}
	if err := loaded.CheckListen(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	if s.lock == nil {
		s.lock, err = attach.Reserve(ctx, s.place, false)
	}
	return s, err
}

// replaceDaemon asks a server in the background to end, and reports whether there is one.
func (c *serveCommand) replaceDaemon(ctx context.Context, proc *process, place attach.Place) (bool, error) {
	running, err := attach.Find(ctx, place, false)
	if err != nil || !running.Daemon || c.Daemon {
		return false, nil //nolint:nilerr // there is no such server
	}
	fmt.Fprintf(proc.Stderr, "taking over from the server in the background (pid %d)\n", running.PID)
	_, err = running.Request(ctx, http.MethodPost, "/stop")
	return true, err
}

// listen accepts those who attach; stop ends the server.
func (s *sharing) listen(ctx context.Context, srv *server.Server, stop func()) error {
	data, err := filepath.Abs(s.config.Data)
	if err != nil || s.lock == nil {
		return err
	}
	options := attach.Options{
		Serve: func(ctx context.Context, in io.Reader, out io.Writer, want attach.Want) error {
			return srv.ServePipe(within(tool.WithMenu(ctx, want.Menu), want.Set), in, out)
		},
		Conn: owner.WithConn, Client: srv.AttachedClient, Owner: srv.MayBeOwner,
		API: srv.OwnerHandler(), Reload: srv.ReloadAll,
		Info: func() attach.Info {
			return attach.Info{Version: version, PID: os.Getpid(), URL: srv.URL(), Config: s.config.File, Data: data, Daemon: s.daemon}
		},
	}
	if s.daemon {
		options.Stop = stop
	}
	lock := s.lock
	s.lock = nil
	s.listener, err = attach.Listen(context.WithoutCancel(ctx), s.place, lock, options)
	return err
}

// close ends it, once.
func (s *sharing) close() (err error) {
	if s.listener != nil {
		err = s.listener.Close()
	}
	if s.lock != nil {
		err = s.lock.Unlock()
	}
	s.listener, s.lock = nil, nil
	return err
}

// chooseAddress picks another port if the configured one is in use: clients of a server in
// the background do not need it.
func chooseAddress(ctx context.Context, loaded *config.Loaded) {
	if loaded.CheckListen(ctx) != nil && config.ListensLocally(loaded.Listen) {
		loaded.Listen = "127.0.0.1:0"
	}
}

// stopIdle ends a server in the background that nobody has used for a while.
func (s *sharing) stopIdle(ctx context.Context, srv *server.Server, stop func()) {
	idle := time.Duration(s.config.Daemon.Idle)
	if idle <= 0 || s.listener == nil {
		return
	}
	tick := time.NewTicker(max(idle/20, 10*time.Millisecond))
	defer tick.Stop()
	used := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if srv.Busy() {
				used = now
			}
			if now.Sub(used) >= idle && s.listener.Retire() {
				stop()
				return
			}
		}
	}
}

// reloadCommand is `luanette reload`.
type reloadCommand struct {
	settingFlags
}

// Help is shown by `luanette reload --help`.
func (reloadCommand) Help() string {
	return `The server that runs on the data folder reads its configuration file again, and the
files that it imports. Changed upstreams reconnect, and upstreams that users removed
come back. After a mistake in the file nothing changes. The other nodes on its database
do the same with their own files, and log what is wrong with those. The signal SIGHUP
reloads only one node.`
}

// Run has the server reload, and prints what takes effect only after a restart.
func (c *reloadCommand) Run(ctx context.Context, proc *process) error {
	loaded, err := c.loadQuietly(proc, nil)
	if err != nil {
		return err
	}
	running, err := attach.Find(ctx, placeOf(loaded, proc.Env), false)
	if other := (*attach.OtherError)(nil); errors.As(err, &other) {
		return fault.Wrap(fault.NotFound, err, "reload").WithHint("name its file with --config")
	}
	if err != nil {
		return fault.Wrap(fault.NotFound, err, "reload").WithHint("name its folder with --data; `luanette serve` starts a server")
	}
	waiting, err := running.Reload(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(proc.Stdout, "reloaded the configuration of the server with pid %d, and of the other nodes on its database\n", running.PID)
	if len(waiting) > 0 {
		fmt.Fprintf(proc.Stdout, "restart needed for %s\n", strings.Join(waiting, ", "))
	}
	return nil
}

// menuFlags are the flags of the commands that serve MCP clients. A pointer that stays
// nil was not given.
type menuFlags struct {
	Menu  *string `placeholder:"NAME" help:"Which of our own tools clients see: code, standard or full (default code); direct: the tools of servers instead."`
	Music bool    `help:"Offer the music tools."`
}

// within returns ctx for a client that asks for a set of tools, or for none.
func within(ctx context.Context, set string) context.Context {
	return principal.With(ctx, principal.Of(ctx).InSet(set))
}

// settings returns the flags by the keys of their settings.
func (f *menuFlags) settings() map[string]*string {
	given := map[string]*string{"mcp.menu": f.Menu}
	if f.Music {
		yes := "true"
		given["music.enabled"] = &yes
	}
	return given
}
