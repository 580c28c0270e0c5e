//go:build !unix

package app

import "io/fs"

// privateFile leaves it to the folder's access list.
func privateFile(fs.FileInfo) bool { return true }

// ownersFolder leaves it to the folder's access list.
func ownersFolder(fs.FileInfo) bool { return true }
