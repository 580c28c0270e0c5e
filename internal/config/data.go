package config

import (
	"os"
	"path/filepath"

	"github.com/luanette/luanette/internal/base/fault"
)

// MakeDataFolder creates the data folder if it does not exist.
func MakeDataFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fault.Wrap(fault.Config, err, "create data folder").
			WithHint("choose a folder you may write to with --data or LUANETTE_DATA")
	}
	return nil
}

// DatabaseFile is the name of the database file in the data folder.
const DatabaseFile = "luanette.db"

// Folder is the absolute path of a folder in the data folder.
func (c *Config) Folder(name string) string {
	path, err := filepath.Abs(filepath.Join(c.Data, name))
	if err != nil {
		return filepath.Join(c.Data, name)
	}
	return path
}

// TempFolder holds the temporary folders of scripts, whose files they may upload.
func (c *Config) TempFolder() string { return c.Folder("temp") }
