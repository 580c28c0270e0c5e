//go:build unix

package config

import (
	"io/fs"
)

// privateFile reports whether only its owner may read a file.
func privateFile(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 == 0 }

// OnlyOwnerWrites reports whether only the owner of a folder may write to it.
func OnlyOwnerWrites(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 == 0 }
