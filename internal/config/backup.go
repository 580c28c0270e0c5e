package config

import (
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// Backup configures the backups that the server makes itself.
type Backup struct {
	Every  Duration `toml:"every" help:"how often the server makes a backup of itself, which it verifies by restoring it; 0 makes none; docs/operate.md"`
	Keep   int      `toml:"keep" help:"how many of these backups are kept"`
	Folder string   `toml:"folder" trust:"needed" help:"folder of these backups; backups in the data folder when empty, but another disk is better"`
}

func (c Backup) check() error {
	switch {
	case c.Every < 0 || c.Every > 0 && c.Every < Duration(time.Minute):
		return fault.New(fault.Config, "backup.every: %s is too short", time.Duration(c.Every)).WithHint("such as 1h; 0 makes no backups")
	case c.Keep < 1:
		return fault.New(fault.Config, "backup.keep: %d is too small", c.Keep).WithHint("24 is usual")
	}
	return nil
}
