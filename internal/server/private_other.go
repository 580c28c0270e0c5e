//go:build !unix

package server

import "io/fs"

// ownersFolder leaves it to the folder's access list.
func ownersFolder(fs.FileInfo) bool { return true }

// lockFolder leaves it to the files in a folder that are open, which nobody else can
// remove.
func lockFolder(string) (unlock func() error, err error) {
	return func() error { return nil }, nil
}
