//go:build unix

package config

import (
	"io/fs"
)

// privateFile tells that only its owner may read it.
func privateFile(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 == 0 }
