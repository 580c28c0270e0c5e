package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/filelock"
)

// Temp is a run's own folder. It is created on first use and removed by Close.
type Temp struct {
	parent string
	fixed  string // the folder's path, if the caller chose it; "" creates a new one
	limit  int64

	mu   sync.Mutex
	dir  string
	used int64
}

// NewTemp creates folders below parent ("" is the system's) that hold at most limit
// bytes.
func NewTemp(parent string, limit int64) *Temp {
	return &Temp{parent: parent, limit: limit}
}

// NewTempAt uses the folder at path, which Close does not remove: it belongs to
// something that outlives the run, such as a job that resumes after a restart.
func NewTempAt(path string, limit int64) *Temp {
	return &Temp{fixed: path, limit: limit}
}

// Dir returns the folder and creates it if needed.
func (t *Temp) Dir() (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dir != "" {
		return t.dir, nil
	}
	dir, err := t.make()
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "make temp folder")
	}
	t.dir = dir
	return dir, nil
}

func (t *Temp) make() (string, error) {
	if t.fixed != "" {
		return t.fixed, os.MkdirAll(t.fixed, 0o700)
	}
	return os.MkdirTemp(t.parent, "luanette-*")
}

// Path returns the path of a file in the folder. The name must stay inside.
func (t *Temp) Path(name string) (string, error) {
	dir, err := t.Dir()
	if err != nil {
		return "", err
	}
	if !filepath.IsLocal(name) {
		return "", fault.New(fault.InvalidParams, "temp.path(%q): the name leaves the temp folder", name).
			WithHint("use a plain file name such as \"output.mid\"")
	}
	return filepath.Join(dir, name), nil
}

// take accounts for bytes about to be written. Files removed or replaced since are
// noticed by measuring the folder, which is only done when the account is full.
func (t *Temp) take(bytes int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.used+bytes > t.limit {
		t.used = folderSize(t.dir)
	}
	if t.used+bytes > t.limit {
		return fault.New(fault.Limit, "the temp folder is full: %d bytes are allowed", t.limit).
			WithHint("remove files with temp.remove, or raise the limit in the configuration")
	}
	t.used += bytes
	return nil
}

func folderSize(dir string) int64 {
	var size int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil
	})
	return size
}

// Close removes the folder and everything in it, unless it is at a fixed path.
func (t *Temp) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dir == "" || t.fixed != "" {
		return nil
	}
	dir := t.dir
	t.dir = ""
	return os.RemoveAll(dir)
}

// TempRoot is the parent of a process's temp folders. Processes may share a data folder,
// and one that is killed leaves its root behind: a lock beside each root tells whether
// its process lives.
type TempRoot struct {
	dir  string
	lock *filelock.Lock
}

// lockName ends the names of the locks.
const lockName = ".lock"

// OpenTempRoot removes the roots of processes that have ended, and makes one for this
// process, below parent.
func OpenTempRoot(ctx context.Context, parent string) (*TempRoot, error) {
	root, err := openTempRoot(ctx, parent)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "make temp folder")
	}
	return root, nil
}

func openTempRoot(ctx context.Context, parent string) (root *TempRoot, err error) {
	opening, err := filelock.Wait(ctx, filepath.Join(parent, "opening")) // nobody else sweeps or opens
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, opening.Unlock()) }()
	locks, err := filepath.Glob(filepath.Join(parent, "*"+lockName))
	if err != nil {
		return nil, err
	}
	for _, path := range locks {
		if err := sweep(path); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp(parent, "process-*")
	if err != nil {
		return nil, err
	}
	lock, err := filelock.Try(dir + lockName)
	if err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	return &TempRoot{dir, lock}, nil
}

// sweep removes the root of a lock that nobody holds.
func sweep(path string) error {
	lock, err := filelock.Try(path)
	if lock == nil {
		return err
	}
	return (&TempRoot{strings.TrimSuffix(path, lockName), lock}).Close()
}

// Dir is the folder's path.
func (r *TempRoot) Dir() string { return r.dir }

// Close removes the folder and everything in it.
func (r *TempRoot) Close() error {
	err := errors.Join(os.RemoveAll(r.dir), r.lock.Unlock())
	if gone := os.Remove(r.dir + lockName); !errors.Is(gone, fs.ErrNotExist) { // a process that just starts may be faster
		err = errors.Join(err, gone)
	}
	return err
}
