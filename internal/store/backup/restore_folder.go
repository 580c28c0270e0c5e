package backup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

// restoringSuffix and a number follow the data folder's name in the name of the folder
// into which a backup is restored until it is complete.
const restoringSuffix = ".restoring-"

// makeFolder creates the folder to restore into and locks it until release is called
// or the process ends. Unlocked folders belong to restores that were killed; they are
// removed.
func (t target) makeFolder() (fresh string, removed []string, release func() error, err error) {
	if removed, err = t.removeAborted(); err != nil {
		return "", removed, nil, err
	}
	parent, name := filepath.Split(t.data)
	if err = os.MkdirAll(parent, 0o700); err == nil {
		fresh, err = os.MkdirTemp(parent, name+restoringSuffix)
	}
	var unlock func() error
	if err == nil {
		unlock, err = lockFolder(fresh)
	}
	if err != nil {
		return "", removed, nil, fault.Wrap(fault.Config, err, "create the folder to restore into").
			WithHint("choose a data folder with --data whose parent folder you may write to")
	}
	// After swap the folder does not exist under this name.
	return fresh, removed, func() error { return errors.Join(os.RemoveAll(fresh), unlock()) }, nil
}

// removeAborted removes the folders of aborted restores into this data folder.
func (t target) removeAborted() (removed []string, err error) {
	entries, err := os.ReadDir(filepath.Dir(t.data))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "look for aborted restores")
	}
	for _, e := range entries {
		left := filepath.Join(filepath.Dir(t.data), e.Name())
		if !e.IsDir() || !isRestoring(t.data, left) {
			continue
		}
		unlock, err := lockFolder(left)
		if errors.Is(err, errLocked) {
			return removed, fault.New(fault.Conflict, "a backup is being restored into %s", t.data).WithHint("wait for it")
		}
		if err == nil {
			err = errors.Join(os.RemoveAll(left), unlock())
		}
		if err != nil {
			return removed, fault.Wrap(fault.Config, err, "remove the folder of an aborted restore").WithHint("remove %s", left)
		}
		removed = append(removed, left)
	}
	return removed, nil
}

// isRestoring reports whether makeFolder created a folder of that name.
func isRestoring(data, folder string) bool {
	number, ok := strings.CutPrefix(folder, data+restoringSuffix)
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

var errLocked = errors.New("another process has locked the folder")
