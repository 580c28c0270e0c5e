package config

import "path/filepath"

// AbsoluteFolders returns the folders as absolute paths. One that has none is left out.
func AbsoluteFolders(folders []string) (absolute []string) {
	for _, folder := range folders {
		if abs, err := filepath.Abs(folder); err == nil {
			absolute = append(absolute, abs)
		}
	}
	return absolute
}
