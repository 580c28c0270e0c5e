package server

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
)

// restoringName begins, behind the data folder's name, that of the folder into which
// a backup is restored until it is whole.
const restoringName = ".restoring-"

// makeFresh makes the folder to restore into, which is locked until release is called
// or the process ends: a folder that nobody has locked was left by a restore that was
// killed, and is removed.
func (p place) makeFresh() (fresh string, removed []string, release func() error, err error) {
	if removed, err = p.removeLeft(); err != nil {
		return "", removed, nil, err
	}
	parent, name := filepath.Split(p.data)
	if err = os.MkdirAll(parent, 0o700); err == nil {
		fresh, err = os.MkdirTemp(parent, name+restoringName)
	}
	var unlock func() error
	if err == nil {
		unlock, err = lockFolder(fresh)
	}
	if err != nil {
		return "", removed, nil, fault.Wrap(fault.Config, err, "make folder to restore into").
			WithHint("choose a data folder that you may write beside, with --data")
	}
	// In its place it is not there any more.
	return fresh, removed, func() error { return errors.Join(os.RemoveAll(fresh), unlock()) }, nil
}

// removeLeft removes the folders that restores into this place have left.
func (p place) removeLeft() (removed []string, err error) {
	entries, err := os.ReadDir(filepath.Dir(p.data))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "look for what other restores left")
	}
	for _, e := range entries {
		left := filepath.Join(filepath.Dir(p.data), e.Name())
		if !e.IsDir() || !isRestoring(p.data, left) {
			continue
		}
		unlock, err := lockFolder(left)
		if errors.Is(err, errLocked) {
			return removed, fault.New(fault.Conflict, "a backup is being restored into %s", p.data).WithHint("wait for it")
		}
		if err == nil {
			err = errors.Join(os.RemoveAll(left), unlock())
		}
		if err != nil {
			return removed, fault.Wrap(fault.Config, err, "remove what a restore that was broken off has left").WithHint("remove %s", left)
		}
		removed = append(removed, left)
	}
	return removed, nil
}

// isRestoring tells whether a folder has a name as makeFresh gives them: digits follow.
func isRestoring(data, folder string) bool {
	number, ok := strings.CutPrefix(folder, data+restoringName)
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

var errLocked = errors.New("another process has locked the folder")
