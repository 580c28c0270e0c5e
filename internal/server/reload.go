package server

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/luanette/luanette/internal/config"
)

// settle is how long a file must be left alone before it is read: editors save
// in several steps.
const settle = 150 * time.Millisecond

// Reload reads the configuration file and the files it imports again. What can
// takes effect at once, the upstreams above all: only what changed reconnects, and
// what people removed comes back. For the rest it is told that a restart is needed.
// A mistake in a file is logged and everything stays as it was.
func (srv *Server) Reload(ctx context.Context) { srv.reloadLogged(ctx, true) }

// reloadLogged is Reload when a file has changed: of what people removed only that comes
// back whose settings are others now.
func (srv *Server) reloadLogged(ctx context.Context, restore bool) {
	srv.reloading.Lock()
	defer srv.reloading.Unlock()
	if err := srv.reload(ctx, restore); err != nil {
		srv.log.ErrorContext(ctx, "configuration not reloaded", "error", err)
		return
	}
	srv.log.InfoContext(ctx, "configuration reloaded", "upstreams", len(srv.upstreams.Namespaces()))
	if waiting := srv.restartNeeded(); len(waiting) > 0 {
		srv.log.WarnContext(ctx, "restart needed for settings that changed", "settings", waiting)
	}
}

func (srv *Server) reload(ctx context.Context, restore bool) error {
	fresh, err := srv.config.Reread(srv.options.Env)
	if err != nil {
		return err
	}
	srv.watching.want(fresh.WatchedFiles()) // before they are read: what is wrong with them will be mended there
	srv.auditAdmin(ctx, "config.reload", fresh.File, nil)
	specs, _, err := fresh.UpstreamSpecs(srv.options.Env)
	if err != nil {
		return err
	}
	anew := srv.upstreams.Edited(specs)
	if err := srv.apply(ctx, fresh); err != nil {
		return err
	}
	if restore {
		anew = slices.Sorted(maps.Keys(srv.upstreams.Removed()))
	}
	return srv.upstreams.Unremove(ctx, anew)
}

// apply makes what can be changed while we run that of a configuration.
func (srv *Server) apply(ctx context.Context, config *config.Loaded) error {
	specs, warnings, err := config.UpstreamSpecs(srv.options.Env)
	if err != nil {
		return err
	}
	for _, warning := range warnings {
		srv.log.WarnContext(ctx, "upstreams of the configuration", "warning", warning)
	}
	settings := config.PolicySettings()
	if !reflect.DeepEqual(*srv.policy.Settings(), settings) {
		text, _ := json.Marshal(settings) // texts and lists always encode
		srv.auditAdmin(ctx, "policy.change", config.File, text)
	}
	before := srv.current()
	srv.latest.Store(srv.config.WithLive(config))
	srv.policy.Set(settings) // before there is anything it is about
	srv.approvals.SetPolicy(srv.approvalPolicy(&config.Config))
	srv.pins.Set(config.PinSettings())
	if err := srv.upstreams.Configure(specs, config.UpstreamPlaces(), config.OverlayRules()); err != nil {
		return err
	}
	srv.applyLive(before)
	srv.catalog.Refresh(ctx)
	srv.publishChanges(config)
	return nil
}

// publishChanges publishes an event for each setting that differs from those
// announced before. The first configuration is no change.
func (srv *Server) publishChanges(now *config.Loaded) {
	before := srv.announced
	srv.announced = now
	if before == nil {
		return
	}
	for _, change := range config.Changes(srv.config, before, now) {
		srv.bus.Publish(change)
	}
}

// watchConfig reloads when the configuration file or what it imports changes.
func (srv *Server) watchConfig(ctx context.Context) func(context.Context) {
	files := srv.config.WatchedFiles()
	if own := config.UserFile(srv.options.Env); srv.config.File == "" && filepath.IsAbs(own) {
		if err := os.MkdirAll(filepath.Dir(own), 0o700); err == nil {
			files[own] = true // it may be made while we run
		}
	}
	if len(files) == 0 {
		return nil
	}
	watcher := srv.newWatcher(ctx)
	if watcher == nil {
		return nil
	}
	srv.watching.follow(files, func(folder string) {
		if err := watcher.Add(folder); err != nil {
			srv.log.WarnContext(ctx, "files are not watched", "folder", folder, "error", err)
		}
	})
	return func(ctx context.Context) {
		defer watcher.Close()
		srv.onRest(ctx, watcher, srv.watching.has, func(ctx context.Context) { srv.reloadLogged(ctx, false) })
	}
}

// watchlist is the files that make up the configuration. It grows when a reload
// finds others.
type watchlist struct {
	mu    sync.Mutex
	files map[string]bool
	watch func(folder string) // nil: nothing is watched
}

// follow begins to watch files.
func (w *watchlist) follow(files map[string]bool, watch func(folder string)) {
	w.mu.Lock()
	w.watch = watch
	w.mu.Unlock()
	w.want(files)
}

// want watches these files too.
func (w *watchlist) want(files map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watch == nil {
		return
	}
	if w.files == nil {
		w.files = map[string]bool{}
	}
	for file := range files {
		if !w.files[file] {
			w.files[file] = true
			w.watch(filepath.Dir(file))
		}
	}
}

func (w *watchlist) has(file string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.files[file]
}

func (srv *Server) newWatcher(ctx context.Context) *fsnotify.Watcher {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		srv.log.WarnContext(ctx, "files are not watched", "error", err)
		return nil
	}
	return watcher
}

// watch begins to watch folders and returns what calls changed, until its context
// ends, once the files in them that matter have come to rest; nil when there is
// nothing to watch. Folders are watched, because editors replace files.
func (srv *Server) watch(ctx context.Context, folders []string, matters func(path string) bool, changed func(context.Context)) func(context.Context) {
	if len(folders) == 0 {
		return nil
	}
	watcher := srv.newWatcher(ctx)
	if watcher == nil {
		return nil
	}
	for _, folder := range folders {
		if err := watcher.Add(folder); err != nil {
			srv.log.WarnContext(ctx, "files are not watched", "folder", folder, "error", err)
		}
	}
	return func(ctx context.Context) {
		defer watcher.Close()
		srv.onRest(ctx, watcher, matters, changed)
	}
}

// onRest calls changed when files that matter have been left alone for a while.
func (srv *Server) onRest(ctx context.Context, watcher *fsnotify.Watcher, matters func(string) bool, changed func(context.Context)) {
	quiet := time.NewTimer(settle)
	quiet.Stop()
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-watcher.Events:
			if matters(e.Name) {
				quiet.Reset(settle)
			}
		case err := <-watcher.Errors:
			srv.log.WarnContext(ctx, "watching files", "error", err)
		case <-quiet.C:
			changed(ctx)
		}
	}
}
