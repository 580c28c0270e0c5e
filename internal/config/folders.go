package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/luanette/luanette/internal/base/fault"
)

// AbsoluteFolders returns the folders as absolute paths. One that has none is left out.
func AbsoluteFolders(folders []string) (absolute []string) {
	for _, folder := range folders {
		if abs, err := filepath.Abs(folder); err == nil {
			absolute = append(absolute, abs)
		}
	}
	return absolute
}

// localFile is the configuration file of the working folder.
const localFile = "luanette.toml"

// configFile returns the file to read: the one that a flag or variable names, which must
// exist, or the first that exists in the usual places.
func configFile(sources Sources) (string, error) {
	if sources.File != "" {
		return sources.File, nil
	}
	if named := sources.Env[configVariable]; named != "" {
		return named, nil
	}
	for _, path := range []string{localFile, UserFile(sources.Env)} {
		_, err := os.Stat(path)
		if err == nil {
			return path, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fault.Wrap(fault.Config, err, "look for configuration")
		}
	}
	return "", nil
}

// UserFile returns the path of the user's own configuration file.
func UserFile(env Environment) string { return filepath.Join(UserFolder(env), "luanette.toml") }

func UserFolder(env Environment) string {
	if dir := env["XDG_CONFIG_HOME"]; dir != "" {
		return filepath.Join(dir, "luanette")
	}
	return filepath.Join(env["HOME"], ".config", "luanette")
}

func dataFolder(env Environment) string {
	if dir := env["XDG_DATA_HOME"]; dir != "" {
		return filepath.Join(dir, "luanette")
	}
	if home := env["HOME"]; home != "" {
		return filepath.Join(home, ".local", "share", "luanette")
	}
	return "luanette-data"
}
