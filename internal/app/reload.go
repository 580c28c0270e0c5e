package app

import (
	"context"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a file must be left alone before it is read: editors save
// in several steps.
const settle = 150 * time.Millisecond

// Reload reads the configuration file and the files it imports again and brings
// the upstreams in line with them: only what changed reconnects. A mistake in a
// file is logged and everything stays as it was. Other settings need a restart.
func (h *House) Reload(ctx context.Context) {
	if err := h.reload(); err != nil {
		h.log.ErrorContext(ctx, "configuration not reloaded", "error", err)
		return
	}
	h.log.InfoContext(ctx, "configuration reloaded", "upstreams", len(h.upstreams.Namespaces()))
}

func (h *House) reload() error {
	fresh := &Loaded{Config: defaults(h.options.Env), Origins: map[string]string{}}
	if h.config.File != "" {
		if err := fresh.readFile(h.config.File); err != nil {
			return err
		}
	} else {
		fresh.MCP.Import = h.config.MCP.Import
	}
	if err := fresh.check(); err != nil {
		return err
	}
	specs, _, err := fresh.specs(h.options.Env)
	if err != nil {
		return err
	}
	return h.upstreams.configure(specs)
}

// watchConfig begins to watch the configuration file and what it imports, and
// returns what reloads them until its context ends; nil when there is nothing to
// watch. Folders are watched, because editors replace files.
func (h *House) watchConfig(ctx context.Context) func(context.Context) {
	files := h.config.watched()
	if len(files) == 0 {
		return nil
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		h.log.WarnContext(ctx, "configuration is not watched", "error", err)
		return nil
	}
	for file := range files {
		if err := watcher.Add(filepath.Dir(file)); err != nil {
			h.log.WarnContext(ctx, "configuration is not watched", "file", file, "error", err)
		}
	}
	return func(ctx context.Context) {
		defer watcher.Close()
		h.reloadOn(ctx, watcher, files)
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

func (h *House) reloadOn(ctx context.Context, watcher *fsnotify.Watcher, files map[string]bool) {
	quiet := time.NewTimer(settle)
	quiet.Stop()
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case changed := <-watcher.Events:
			if files[changed.Name] {
				quiet.Reset(settle)
			}
		case err := <-watcher.Errors:
			h.log.WarnContext(ctx, "watching the configuration", "error", err)
		case <-quiet.C:
			h.Reload(ctx)
		}
	}
}
