package publish

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/filewatch"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/cas"
)

// SourceWriter stores scripts: content, the file it came from, and the version it
// replaces.
type SourceWriter interface {
	Store(ctx context.Context, content []byte, file string, parent cas.Ref) (cas.Ref, error)
}

// Folder publishes the scripts of a folder, *.lua, *.js and *.ts, each as the tool that
// its describe() names.
type Folder struct {
	dir       string
	published *Published
	writer    SourceWriter
	log       *slog.Logger

	mu       sync.Mutex
	seen     map[string]cas.Ref // the last version of each file that was tried
	problems map[string]error   // why it was refused
}

// NewFolder uses the scripts of dir, which need not exist.
func NewFolder(dir string, published *Published, keeper SourceWriter, log *slog.Logger) *Folder {
	return &Folder{dir: dir, published: published, writer: keeper, log: log, seen: map[string]cas.Ref{}, problems: map[string]error{}}
}

// Sync publishes new and changed files and withdraws removed ones. A file that cannot be
// published is logged once, and its last good version stays. The error means that the
// folder itself could not be read.
func (f *Folder) Sync(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	files, err := f.files()
	if err != nil {
		return fault.Wrap(fault.Config, err, "read scripts folder")
	}
	known := f.published.origins()
	for file, content := range files {
		f.syncFile(ctx, file, content, known[file])
	}
	for file, one := range known {
		if _, there := files[file]; there {
			continue
		}
		if _, seen := f.seen[file]; seen || !f.published.options.Shared { // otherwise it is in another node's folder
			f.withdraw(ctx, file, one)
		}
	}
	for file := range f.seen {
		if _, there := files[file]; !there {
			delete(f.seen, file)
			delete(f.problems, file)
		}
	}
	return nil
}

// Watch makes the folder, if it does not exist, and returns a function that publishes it
// again whenever a file in it changes; nil if it cannot be watched.
func (f *Folder) Watch(ctx context.Context) func(context.Context) {
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		f.log.WarnContext(ctx, "scripts folder", "error", err)
		return nil
	}
	watcher := filewatch.New(ctx, f.log)
	if watcher == nil {
		return nil
	}
	watcher.AddFolder(ctx, f.dir)
	isScript := func(path string) bool { return script.LanguageOf(path) != "" }
	return func(ctx context.Context) {
		watcher.Run(ctx, isScript, func(ctx context.Context) {
			if err := f.Sync(ctx); err != nil {
				f.log.WarnContext(ctx, "scripts folder", "error", err)
			}
		})
	}
}

// Problems returns the files that could not be published, with the reason.
func (f *Folder) Problems() map[string]error {
	f.mu.Lock()
	defer f.mu.Unlock()
	copied := make(map[string]error, len(f.problems))
	for file, err := range f.problems {
		copied[file] = err
	}
	return copied
}

// files reads the scripts of the folder. A file that cannot be read or is incomplete is
// read again when it changes.
func (f *Folder) files() (map[string][]byte, error) {
	entries, err := os.ReadDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || script.LanguageOf(name) == "" || strings.HasPrefix(name, ".") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(f.dir, name))
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				continue // it was removed meanwhile
			}
			return nil, err
		}
		files[name] = content
	}
	return files, nil
}

// syncFile publishes one file, unless this version was tried before.
func (f *Folder) syncFile(ctx context.Context, file string, content []byte, now *publication) {
	hash := cas.Sum(content)
	if f.seen[file] == hash {
		return
	}
	f.seen[file] = hash
	delete(f.problems, file)
	if now != nil && now.Hash == hash {
		return
	}
	version, err := f.publish(ctx, file, content, now)
	if err != nil {
		f.problems[file] = err
		f.log.WarnContext(ctx, "script file cannot be published", "file", file, "version", currentVersion(now), "error", err)
		return
	}
	if now != nil && now.Name != version.Name { // describe() gave it another name
		f.withdraw(ctx, file, now)
	}
	f.log.InfoContext(ctx, "script file published", "file", file, "tool", version.Name, "version", version.Version)
}

func (f *Folder) publish(ctx context.Context, file string, content []byte, now *publication) (Version, error) {
	if len(content) > script.MaxSource {
		return Version{}, fault.New(fault.Limit, "the file has %d bytes", len(content)).WithHint("a script has at most %d", script.MaxSource)
	}
	var parent cas.Ref
	if now != nil {
		parent = now.Hash
	}
	if _, err := f.published.runner.Describe(ctx, script.Request{Source: string(content), Name: file}); err != nil {
		return Version{}, err // checked before storing, because not every save of an editor is worth storing
	}
	hash, err := f.writer.Store(ctx, content, file, parent)
	if err != nil {
		return Version{}, err
	}
	return f.published.Publish(ctx, Request{Hash: hash, Publisher: "scripts folder", Origin: file})
}

func (f *Folder) withdraw(ctx context.Context, file string, one *publication) {
	if _, err := f.published.Unpublish(ctx, one.Name); err != nil {
		f.log.WarnContext(ctx, "script of a removed file cannot be withdrawn", "file", file, "tool", one.Name, "error", err)
		return
	}
	f.log.InfoContext(ctx, "script of a file withdrawn", "file", file, "tool", one.Name)
}

func currentVersion(now *publication) int {
	if now == nil {
		return 0
	}
	return now.Version.Version
}
