package config

import (
	"os"

	"github.com/luanette/luanette/internal/base/fault"
)

func MakeDataFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fault.Wrap(fault.Config, err, "create data folder").
			WithHint("choose a folder you may write to with --data or LUANETTE_DATA")
	}
	return nil
}

// DatabaseFile is the name of the database file in the data folder.
const DatabaseFile = "luanette.db"
