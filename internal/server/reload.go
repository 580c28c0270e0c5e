package server

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a file must be left alone before it is read: editors save
// in several steps.
const settle = 150 * time.Millisecond

// Reload reads the configuration file and the files it imports again. What can
// takes effect at once, the upstreams above all: only what changed reconnects, and
// what people removed comes back. For the rest it is told that a restart is needed.
// A mistake in a file is logged and everything stays as it was.
func (h *House) Reload(ctx context.Context) { h.reread(ctx, true) }

// reread is Reload when a file has changed: of what people removed only that comes
// back whose settings are others now.
func (h *House) reread(ctx context.Context, restore bool) {
	h.reloading.Lock()
	defer h.reloading.Unlock()
	if err := h.reload(ctx, restore); err != nil {
		h.log.ErrorContext(ctx, "configuration not reloaded", "error", err)
		return
	}
	h.log.InfoContext(ctx, "configuration reloaded", "upstreams", len(h.upstreams.Namespaces()))
	if waiting := h.restartNeeded(); len(waiting) > 0 {
		h.log.WarnContext(ctx, "restart needed for settings that changed", "settings", waiting)
	}
}

func (h *House) reload(ctx context.Context, restore bool) error {
	fresh, err := loadFrom(h.configFile(), h.config.sources)
	if err != nil {
		return err
	}
	h.watching.want(fresh.watched()) // before they are read: what is wrong with them will be mended there
	h.did(ctx, "config.reload", fresh.File, nil)
	specs, _, err := fresh.specs(h.options.Env)
	if err != nil {
		return err
	}
	anew := h.upstreams.edited(specs)
	if err := h.adopt(ctx, fresh); err != nil {
		return err
	}
	if restore {
		anew = slices.Sorted(mapKeys(h.upstreams.removed()))
	}
	return h.upstreams.unremove(ctx, anew)
}

// adopt makes what can be changed while we run that of a configuration.
func (h *House) adopt(ctx context.Context, config *Loaded) error {
	specs, warnings, err := config.specs(h.options.Env)
	if err != nil {
		return err
	}
	for _, warning := range warnings {
		h.log.WarnContext(ctx, "upstreams of the configuration", "warning", warning)
	}
	settings := config.policySettings()
	if !reflect.DeepEqual(*h.policy.Settings(), settings) {
		text, _ := json.Marshal(settings) // texts and lists always encode
		h.did(ctx, "policy.change", config.File, text)
	}
	before := h.now()
	h.current.Store(h.config.with(config))
	h.policy.Set(settings) // before there is anything it is about
	h.approvals.SetPolicy(h.approvalPolicy(&config.Config))
	h.trust.Set(config.trustSettings())
	if err := h.upstreams.configure(specs, config.places(), config.rules()); err != nil {
		return err
	}
	h.tune(before)
	h.catalog.Refresh(ctx)
	h.tellChanges(config)
	return nil
}

// configFile is the file that was read at the start, or the person's own when
// that was made since then, or "".
func (h *House) configFile() string {
	if h.config.File != "" {
		return h.config.File
	}
	own := ownFile(h.options.Env)
	if _, err := os.Stat(own); err != nil {
		return ""
	}
	return own
}

// watchConfig reloads when the configuration file or what it imports changes.
func (h *House) watchConfig(ctx context.Context) func(context.Context) {
	files := h.config.watched()
	if own := ownFile(h.options.Env); h.config.File == "" && filepath.IsAbs(own) {
		if err := os.MkdirAll(filepath.Dir(own), 0o700); err == nil {
			files[own] = true // it may be made while we run
		}
	}
	if len(files) == 0 {
		return nil
	}
	watcher := h.newWatcher(ctx)
	if watcher == nil {
		return nil
	}
	h.watching.follow(files, func(folder string) {
		if err := watcher.Add(folder); err != nil {
			h.log.WarnContext(ctx, "files are not watched", "folder", folder, "error", err)
		}
	})
	return func(ctx context.Context) {
		defer watcher.Close()
		h.onRest(ctx, watcher, h.watching.has, func(ctx context.Context) { h.reread(ctx, false) })
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

func (h *House) newWatcher(ctx context.Context) *fsnotify.Watcher {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		h.log.WarnContext(ctx, "files are not watched", "error", err)
		return nil
	}
	return watcher
}

// watch begins to watch folders and returns what calls changed, until its context
// ends, once the files in them that matter have come to rest; nil when there is
// nothing to watch. Folders are watched, because editors replace files.
func (h *House) watch(ctx context.Context, folders []string, matters func(path string) bool, changed func(context.Context)) func(context.Context) {
	if len(folders) == 0 {
		return nil
	}
	watcher := h.newWatcher(ctx)
	if watcher == nil {
		return nil
	}
	for _, folder := range folders {
		if err := watcher.Add(folder); err != nil {
			h.log.WarnContext(ctx, "files are not watched", "folder", folder, "error", err)
		}
	}
	return func(ctx context.Context) {
		defer watcher.Close()
		h.onRest(ctx, watcher, matters, changed)
	}
}

// watched are the files that make up the configuration, by their full paths.
func (l *Loaded) watched() map[string]bool {
	paths := make([]string, 0, 1+len(l.MCP.Import))
	if l.File != "" {
		paths = append(paths, l.File)
	}
	for _, path := range l.MCP.Import {
		paths = append(paths, l.beside(path))
	}
	files := map[string]bool{}
	for _, path := range paths {
		if full, err := filepath.Abs(path); err == nil {
			files[full] = true
		}
	}
	return files
}

// onRest calls changed when files that matter have been left alone for a while.
func (h *House) onRest(ctx context.Context, watcher *fsnotify.Watcher, matters func(string) bool, changed func(context.Context)) {
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
			h.log.WarnContext(ctx, "watching files", "error", err)
		case <-quiet.C:
			changed(ctx)
		}
	}
}
