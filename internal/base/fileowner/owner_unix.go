//go:build !windows

package fileowner

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Of returns the id of the user whom a path belongs to, or -1.
func Of(path string) int {
	uid, _, err := IDs(path)
	if err != nil {
		return unknown
	}
	return uid
}

// IDs are those of the user and the group of a path.
func IDs(path string) (uid, gid int, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, err
	}
	of := info.Sys().(*syscall.Stat_t)
	return int(of.Uid), int(of.Gid), nil
}

// Give gives a folder with all that is in it to whom another path belongs.
func Give(folder, as string) error {
	uid, gid, err := IDs(as)
	if err != nil {
		return err
	}
	return filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, gid)
	})
}
