// Package filewatch reports changes of files when they have not been written to for a
// moment.
package filewatch

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long a file must stay unchanged before a change is reported: editors
// write files in several steps.
const settle = 150 * time.Millisecond

// Watcher watches folders, because editors replace files.
type Watcher struct {
	inner *fsnotify.Watcher
	log   *slog.Logger

	mu    sync.Mutex
	files map[string]bool
}

// New returns a watcher, or nil if the system has none left. Run closes it.
func New(ctx context.Context, log *slog.Logger) *Watcher {
	inner, err := fsnotify.NewWatcher()
	if err != nil {
		log.WarnContext(ctx, "files are not watched", "error", err)
		return nil
	}
	return &Watcher{inner: inner, log: log, files: map[string]bool{}}
}

// AddFolder watches the files directly in a folder.
func (w *Watcher) AddFolder(ctx context.Context, folder string) {
	if err := w.inner.Add(folder); err != nil {
		w.log.WarnContext(ctx, "files are not watched", "folder", folder, "error", err)
	}
}

// AddFiles watches these files too, also those that do not exist yet.
func (w *Watcher) AddFiles(ctx context.Context, files map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for file := range files {
		if !w.files[file] {
			w.files[file] = true
			w.AddFolder(ctx, filepath.Dir(file))
		}
	}
}

// HasFile reports whether AddFiles was called with the file.
func (w *Watcher) HasFile(file string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.files[file]
}

// Run calls changed after files for which matters is true have changed, until ctx ends.
func (w *Watcher) Run(ctx context.Context, matters func(path string) bool, changed func(context.Context)) {
	defer w.inner.Close()
	quiet := time.NewTimer(settle)
	quiet.Stop()
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-w.inner.Events:
			if matters(e.Name) {
				quiet.Reset(settle)
			}
		case err := <-w.inner.Errors:
			w.log.WarnContext(ctx, "watching files", "error", err)
		case <-quiet.C:
			changed(ctx)
		}
	}
}
