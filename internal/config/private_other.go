//go:build !unix

package config

import "io/fs"

// privateFile relies on the folder's access list.
func privateFile(fs.FileInfo) bool { return true }

// OnlyOwnerWrites relies on the folder's access list.
func OnlyOwnerWrites(fs.FileInfo) bool { return true }
