//go:build !unix

package server

import "io/fs"

// privateFile leaves it to the folder's access list.
func privateFile(fs.FileInfo) bool { return true }
