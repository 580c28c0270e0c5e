package config

import (
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/script"
)

// Sessions configures script sessions, whose variables persist between runs.
type Sessions struct {
	Idle     Duration `toml:"idle" help:"how long an unused session is kept"`
	Limit    int      `toml:"limit" help:"how many sessions one user may have"`
	Timeout  Duration `toml:"timeout" help:"how long one turn may take; 0 means scripts.timeout"`
	MemoryMB int      `toml:"memory_mb" help:"how much memory one turn may hold, in MiB; 0 means scripts.memory_mb"`
	StateMB  int      `toml:"state_mb" help:"largest state that is saved, in MiB"`
	CacheMB  int      `toml:"cache_mb" was:"ready_mb" help:"about how much memory is used to cache session states, in MiB"`
}

func defaultSessions() Sessions {
	return Sessions{Idle: Duration(7 * 24 * time.Hour), Limit: 100, StateMB: 32, CacheMB: 64}
}

func (c Sessions) check() error {
	switch {
	case c.Idle <= 0:
		return fault.New(fault.Config, "sessions.idle: must be greater than zero").WithHint("such as 168h")
	case c.Limit < 1 || c.StateMB < 1:
		return fault.New(fault.Config, "sessions: limit and state_mb must be 1 or more")
	case c.Timeout < 0 || c.MemoryMB < 0 || c.CacheMB < 0:
		return fault.New(fault.Config, "sessions: timeout, memory_mb and cache_mb cannot be negative")
	}
	return nil
}

// SessionOptions returns the options of script sessions.
func (c Sessions) SessionOptions() script.SessionOptions {
	return script.SessionOptions{
		Idle: time.Duration(c.Idle), Limit: c.Limit,
		Turn:  script.Limits{Time: time.Duration(c.Timeout), Memory: int64(c.MemoryMB) << 20},
		State: int64(c.StateMB) << 20, Memory: max(int64(c.CacheMB)<<20, 1),
	}
}
