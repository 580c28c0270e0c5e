//go:build unix

package app

import "io/fs"

// privateFile tells that only its owner may read it.
func privateFile(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 == 0 }

// ownersFolder tells that only its owner may write to it.
func ownersFolder(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 == 0 }
