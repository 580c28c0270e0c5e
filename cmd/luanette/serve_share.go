package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/access/owner"
	"github.com/luanette/luanette/internal/base/filelock"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/attach"
	"github.com/luanette/luanette/internal/server"
)

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
		Serve: func(ctx context.Context, in io.Reader, out io.Writer, menu string) error {
			return srv.ServePipe(tool.WithMenu(ctx, menu), in, out)
		},
		Conn: owner.WithConn, Client: srv.AttachedClient, Owner: srv.MayBeOwner,
		Admin: srv.AdminHandler(), Reload: srv.Reload,
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
