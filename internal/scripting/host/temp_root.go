package host

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/filelock"
)

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
