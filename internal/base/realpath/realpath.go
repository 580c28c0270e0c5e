// Package realpath gives a file one path, whatever folder or symbolic link it is
// reached by.
package realpath

import "path/filepath"

// Of returns the absolute path without symbolic links, or as much of that as can be
// found out; "" stays as it is.
func Of(path string) string {
	if path == "" {
		return ""
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if real, err := filepath.EvalSymlinks(full); err == nil {
		return real
	}
	return full
}
